// Numbers as `paceline describe` prints them, to the digit: cli/view/terminal.cc, cli/view/dashboard.cc and base/clock.cc are the same in C++.
// A value that is not known is a dash.

export const NONE = "-";

type Maybe = number | null | undefined;

function known(value: Maybe): value is number {
  return value !== null && value !== undefined && !Number.isNaN(value);
}

// `value` with `decimals` digits behind the point, as printf's %.*f: ties go to the even digit, and there is no negative zero.
export function fixed(value: number, decimals: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value < 0 ? "-inf" : "inf";
  if (Math.abs(value) >= 1e21) return BigInt(value).toString() + (decimals > 0 ? "." + "0".repeat(decimals) : "");
  let text = value.toFixed(decimals);
  const exact = value.toFixed(Math.min(100, decimals + 40));
  const rest = exact.slice(exact.indexOf(".") + 1 + decimals);
  if (/^50*$/.test(rest)) {
    const cut = exact.slice(0, exact.indexOf(".") + (decimals > 0 ? 1 + decimals : 0));
    if ("02468".includes(cut[cut.length - 1] ?? "")) text = cut;
  }
  return /^-[0.]*$/.test(text) ? text.slice(1) : text;
}

// printf's %.3e: an exponent has two digits at least.
function scientific(value: number, decimals: number): string {
  return value.toExponential(decimals).replace(/e([+-])(\d)$/, "e$10$2");
}

export function withCommas(value: Maybe): string {
  if (!known(value)) return NONE;
  return Math.trunc(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ",");
}

export function lossText(value: Maybe): string {
  if (!known(value)) return NONE;
  const size = Math.abs(value);
  if (value === 0 || !Number.isFinite(value) || (size >= 1e-3 && size < 1e6)) return fixed(value, 4);
  return scientific(value, 3);
}

export function percent(share: Maybe, decimals: number): string {
  return known(share) ? `${fixed(share * 100, decimals)} %` : NONE;
}

export const accuracyText = (share: Maybe): string => percent(share, 2);
export const goodputText = (share: Maybe): string => percent(share, 1);
export const progressText = (share: Maybe): string => percent(share, 0);
export const aucText = (value: Maybe): string => (known(value) ? fixed(value, 4) : NONE);

export function samplesPerSecond(value: Maybe): string {
  return known(value) && value >= 1 ? withCommas(value) : NONE;
}

export function stepsPerSecond(value: Maybe): string {
  if (!known(value) || value <= 0) return NONE;
  return fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0);
}

// Milliseconds of a part of a step, without the unit.
export function ms(value: Maybe): string {
  if (!known(value) || value <= 0) return NONE;
  return fixed(value, value < 10 ? 2 : 1);
}

export function humanBytes(bytes: Maybe): string {
  if (!known(bytes)) return NONE;
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    ++unit;
  }
  return `${fixed(value, unit === 0 ? 0 : 1)} ${units[unit]}`;
}

// "850 ms", "8.0 s", "3 min 20 s", "2 h 5 min".
export function humanSeconds(seconds: Maybe): string {
  if (!known(seconds) || !(seconds >= 0) || seconds > 1e9) return NONE;
  if (seconds === 0) return "0 s";
  if (seconds < 1e-3) return `${fixed(seconds * 1e6, 0)} us`;
  if (seconds < 1) return `${fixed(seconds * 1e3, seconds < 1e-2 ? 1 : 0)} ms`;
  if (seconds < 60) return `${fixed(seconds, 1)} s`;
  const whole = Math.trunc(seconds);
  if (seconds < 3600) {
    const minutes = Math.trunc(whole / 60);
    return whole % 60 === 0 ? `${minutes} min` : `${minutes} min ${whole % 60} s`;
  }
  const hours = Math.trunc(whole / 3600);
  const minutes = Math.trunc(whole / 60) % 60;
  return minutes === 0 ? `${hours} h` : `${hours} h ${minutes} min`;
}

// "1.92×", of a member's time over the others' median.
export function factor(value: Maybe): string {
  return known(value) ? `${fixed(value, 2)}×` : NONE;
}

// A number of an axis or a read-out: short, with the digits that matter.
export function short(value: Maybe): string {
  if (!known(value)) return NONE;
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size >= 1e9 || size < 1e-4) return scientific(value, 1);
  if (size >= 1e3) return withCommas(Math.round(value));
  return String(Number(value.toPrecision(4)));
}

export const shortPercent = (share: number): string => `${short(Number((share * 100).toPrecision(4)))} %`;
