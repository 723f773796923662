// Times, spans and sizes as people write them.

import { preferences } from "./preferences";

const locale = (): string => (preferences.language === "zh" ? "zh-CN" : navigator.language.startsWith("en") ? navigator.language : "en");

/** ago returns how long ago a time was, or in how long it is. */
export function ago(at: number): string {
  const seconds = Math.round((at - Date.now()) / 1000);
  const format = new Intl.RelativeTimeFormat(locale(), { numeric: "auto", style: "short" });
  const units: [Intl.RelativeTimeFormatUnit, number][] = [
    ["day", 86_400],
    ["hour", 3600],
    ["minute", 60],
  ];
  for (const [unit, size] of units) {
    if (Math.abs(seconds) >= size) {
      return unit === "day" && Math.abs(seconds) > 7 * size ? day(at) : format.format(Math.round(seconds / size), unit);
    }
  }
  return format.format(seconds < 10 ? 0 : seconds, "second"); // less than a minute ago is now
}

export function day(at: number): string {
  const sameYear = new Date(at).getFullYear() === new Date().getFullYear();
  return new Intl.DateTimeFormat(locale(), { month: "short", day: "numeric", ...(sameYear ? {} : { year: "numeric" }) }).format(at);
}

/** moment returns a time of day, with its day if that is not today. */
export function moment(at: number): string {
  const today = new Date().toDateString() === new Date(at).toDateString();
  return new Intl.DateTimeFormat(locale(), {
    hour: "numeric",
    minute: "2-digit",
    ...(today ? {} : { weekday: "short", month: "short", day: "numeric" }),
  }).format(at);
}

/** span returns a length of time. */
export function span(ms: number): string {
  const units: [string, number][] = [
    ["day", 86_400_000],
    ["hour", 3_600_000],
    ["minute", 60_000],
    ["second", 1000],
  ];
  const [unit, size] = units.find(([, size]) => ms >= size) ?? ["second", 1000];
  const value = ms < 10_000 ? Math.max(0.1, Math.round(ms / 100) / 10) : Math.round((ms / size) * 10) / 10;
  return new Intl.NumberFormat(locale(), { style: "unit", unit, unitDisplay: unit === "second" ? "narrow" : "long", maximumFractionDigits: 1 }).format(value);
}

export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${Math.round(bytes / 1000)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}
