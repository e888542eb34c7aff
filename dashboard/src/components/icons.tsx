// Small pictures, drawn with the colour of the text beside them. They say nothing that words do not.

import type { Phase } from "../api/types.ts";

const PATHS = {
  running: <circle cx="8" cy="8" r="4" fill="currentColor" stroke="none" />,
  starting: (
    <>
      <circle cx="8" cy="8" r="5" />
      <path d="M8 3a5 5 0 0 1 0 10z" fill="currentColor" stroke="none" />
    </>
  ),
  pending: (
    <>
      <circle cx="8" cy="8" r="5.5" stroke-dasharray="2.2 2.2" />
    </>
  ),
  restarting: <path d="M12.8 8a4.8 4.8 0 1 1-1.5-3.5M12.8 2.4v2.6h-2.6" />,
  suspended: <path d="M5.5 4v8M10.5 4v8" stroke-width="2.4" />,
  succeeded: <path d="M3.2 8.6l3 3 6.6-7" stroke-width="2" />,
  failed: <path d="M4 4l8 8M12 4l-8 8" stroke-width="2" />,
  stopped: <rect x="4" y="4" width="8" height="8" rx="1" fill="currentColor" stroke="none" />,
  unknown: <path d="M5.6 6a2.4 2.4 0 1 1 3.5 2.1c-.8.4-1.1.8-1.1 1.7M8 12.4v.2" />,
  warning: <path d="M8 2.6l6 10.6H2zM8 6.6v3M8 11.6v.1" />,
  search: (
    <>
      <circle cx="7" cy="7" r="4.2" />
      <path d="M10.2 10.2L14 14" />
    </>
  ),
  sun: (
    <>
      <circle cx="8" cy="8" r="2.8" />
      <path d="M8 1.6v1.6M8 12.8v1.6M1.6 8h1.6M12.8 8h1.6M3.5 3.5l1.1 1.1M11.4 11.4l1.1 1.1M3.5 12.5l1.1-1.1M11.4 4.6l1.1-1.1" />
    </>
  ),
  moon: <path d="M13 9.6A5.6 5.6 0 0 1 6.4 3 5.6 5.6 0 1 0 13 9.6z" />,
  auto: (
    <>
      <circle cx="8" cy="8" r="5.5" />
      <path d="M8 2.5a5.5 5.5 0 0 1 0 11z" fill="currentColor" stroke="none" />
    </>
  ),
  play: <path d="M5 3.6v8.8l7.4-4.4z" fill="currentColor" />,
  pause: <path d="M5.5 4v8M10.5 4v8" stroke-width="2.4" />,
  scale: <path d="M3 13V9M8 13V3M13 13V6" stroke-width="2" />,
  save: <path d="M3 3h8l2 2v8H3zM5.4 3v3.4h4V3M5.4 13V9.6h5.2V13" />,
  replace: <path d="M2.6 6.4h8.6L8.6 3.8M13.4 9.6H4.8l2.6 2.6" />,
  trash: <path d="M3 4.6h10M6.4 4.4V2.8h3.2v1.6M4.4 4.8l.6 8.4h6l.6-8.4M7 7v4M9 7v4" />,
  compare: <path d="M2.4 11.6c2-6 3.4-6 5 0M6.4 4.4c2.4 0 4 9.6 7.2 5.6" />,
  back: <path d="M9.6 3.4L5 8l4.6 4.6" />,
  copy: (
    <>
      <rect x="5.6" y="5.6" width="7.6" height="7.6" rx="1" />
      <path d="M10.4 5.4V2.8H2.8v7.6h2.6" />
    </>
  ),
  close: <path d="M4 4l8 8M12 4l-8 8" />,
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      class="icon"
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      {PATHS[name]}
    </svg>
  );
}

export function phaseIcon(phase: Phase): IconName {
  return phase.toLowerCase() as IconName;
}

export function Logo() {
  return (
    <svg class="logo" width="20" height="20" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <rect width="16" height="16" rx="3.5" class="logo-back" />
      <path
        d="M3.5 10.5h2.2l1.6-5 2 6.5 1.4-4h1.8"
        fill="none"
        stroke="#fff"
        stroke-width="1.5"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}
