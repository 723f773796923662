// The icons of the catalog as characters, so that no font has to be loaded.

const icons: Record<string, string> = {
  accountCircle: "👤", add: "＋", arrowBack: "←", arrowForward: "→", attachFile: "📎", calendarToday: "📅", call: "📞", camera: "📷", check: "✓", close: "✕",
  delete: "🗑", download: "⬇", edit: "✎", event: "📆", error: "⛔", fastForward: "⏩", favorite: "♥", favoriteOff: "♡", folder: "📁", help: "？", home: "⌂", info: "ℹ",
  locationOn: "📍", lock: "🔒", lockOpen: "🔓", mail: "✉", menu: "☰", moreVert: "⋮", moreHoriz: "⋯", notifications: "🔔", notificationsOff: "🔕", pause: "⏸", payment: "💳",
  person: "👤", phone: "📱", photo: "🖼", play: "▶", print: "🖨", refresh: "⟳", rewind: "⏪", search: "🔍", send: "➤", settings: "⚙", share: "⤴", shoppingCart: "🛒",
  skipNext: "⏭", skipPrevious: "⏮", star: "★", starHalf: "⯨", starOff: "☆", stop: "⏹", upload: "⬆", visibility: "👁", visibilityOff: "🙈", volumeDown: "🔉",
  volumeMute: "🔇", volumeOff: "🔇", volumeUp: "🔊", warning: "⚠",
};

/** icon returns the character of an icon; its name, if there is none. */
export function icon(name: string): string {
  return icons[name] ?? name;
}
