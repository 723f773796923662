import { defineConfig } from "vite";

// The page that draws A2UI, which the gateway serves beside the pages of the assistant.
export default defineConfig({
  base: "./",
  publicDir: false,
  build: {
    outDir: "../internal/surface/canvas/dist",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rolldownOptions: {
      input: "a2ui.html",
      output: {
        codeSplitting: false,
        entryFileNames: "a2ui-[hash].js",
        assetFileNames: "a2ui-[hash][extname]",
      },
    },
  },
});
