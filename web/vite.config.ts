import { defineConfig } from "vite";

// One script and one style sheet, with a hash in their names, beside the page. The addresses
// are relative, because the page may be served below a path.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../internal/surface/webui/dist",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        codeSplitting: false,
        entryFileNames: "assets/app-[hash].js",
        assetFileNames: "assets/app-[hash][extname]",
      },
    },
  },
});
