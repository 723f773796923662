// What a person prefers in this browser: the theme and the language.

import { setLanguage, type Language } from "./text";

export type Theme = "system" | "light" | "dark";

export const preferences: { theme: Theme; language: Language } = {
  theme: saved("theme", ["system", "light", "dark"]) ?? "system",
  language: saved("language", ["en", "zh"]) ?? (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en"),
};

function saved<T extends string>(name: string, of: T[]): T | undefined {
  try {
    const value = localStorage.getItem(`chela.${name}`);
    return of.find((v) => v === value);
  } catch {
    return undefined; // no storage
  }
}

export function prefer(change: Partial<typeof preferences>): void {
  Object.assign(preferences, change);
  for (const [name, value] of Object.entries(change)) {
    try {
      localStorage.setItem(`chela.${name}`, value);
    } catch {
      // it lasts as long as the tab
    }
  }
  apply();
}

export function apply(): void {
  setLanguage(preferences.language);
  const root = document.documentElement;
  if (preferences.theme === "system") root.removeAttribute("data-theme");
  else root.setAttribute("data-theme", preferences.theme);
}
