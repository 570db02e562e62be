// Times and numbers, as people read them. Times are UTC, as in every other output of Dogwatch.

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

let serverOffset = 0;

/** Milliseconds of the server's clock. */
export function now() {
  return Date.now() + serverOffset;
}

export function setServerTime(timestamp) {
  const time = Date.parse(timestamp);
  if (Number.isFinite(time)) serverOffset = time - Date.now();
}

export function parseTime(timestamp) {
  return timestamp ? Date.parse(timestamp) : null;
}

/** `3d 4h`, `2h 5m`, `3m 12s`, `8s`. */
export function formatDuration(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  const parts = [
    [Math.floor(seconds / 86400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "m"],
    [seconds % 60, "s"],
  ];
  const first = parts.findIndex(([number]) => number > 0);
  if (first < 0) return "0s";
  const shown = parts.slice(first, first + 2).filter(([number]) => number > 0);
  return shown.map(([number, unit]) => `${number}${unit}`).join(" ");
}

/** `12:04`, with the day if it is another one. */
export function formatTime(time, withSeconds = false) {
  const date = new Date(time);
  const two = (number) => String(number).padStart(2, "0");
  const clock = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}`;
  const full = withSeconds ? `${clock}:${two(date.getUTCSeconds())}` : clock;
  const days = Math.abs(time - now()) / 86_400_000;
  if (new Date(now()).toISOString().slice(0, 10) === date.toISOString().slice(0, 10)) return full;
  if (days < 6) return `${DAYS[date.getUTCDay()]} ${full}`;
  return `${MONTHS[date.getUTCMonth()]} ${date.getUTCDate()} ${full}`;
}

export function formatAge(timestamp) {
  const time = parseTime(timestamp);
  return time === null ? "" : formatDuration(now() - time);
}

/** `in 4m`, or `12m ago`. */
export function formatDistance(timestamp) {
  const time = parseTime(timestamp);
  if (time === null) return "";
  const ahead = time - now();
  return ahead >= 0 ? `in ${formatDuration(ahead)}` : `${formatDuration(-ahead)} ago`;
}

export function countOf(number, word) {
  return `${formatNumber(number)} ${word}${number === 1 ? "" : "s"}`;
}

export function formatNumber(number) {
  return String(number).replace(/\B(?=(\d{3})+(?!\d))/g, "\u2009");
}

/** A word for a POSIX shell. */
export function quoteWord(word) {
  return /^[A-Za-z0-9\-_./=:@,]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
