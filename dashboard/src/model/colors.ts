// Colours of the heat map. Milliseconds go from the background to a strong blue; ratios from blue (faster) by way of the background to orange
// (slower): both scales rise in lightness contrast alone, so that nobody needs to tell red from green.

export type Rgb = readonly [number, number, number];

interface Ramp {
  stops: Rgb[];
}

const LIGHT_RAW: Ramp = {
  stops: [
    [240, 245, 250],
    [189, 215, 238],
    [107, 164, 212],
    [39, 102, 168],
    [12, 44, 92],
  ],
};
const DARK_RAW: Ramp = {
  stops: [
    [24, 32, 43],
    [27, 66, 110],
    [38, 113, 177],
    [104, 178, 235],
    [226, 242, 255],
  ],
};
const LIGHT_RELATIVE: Ramp = {
  stops: [
    [24, 90, 169],
    [122, 174, 219],
    [243, 244, 246],
    [246, 166, 82],
    [190, 78, 6],
    [92, 30, 2],
  ],
};
const DARK_RELATIVE: Ramp = {
  stops: [
    [110, 180, 245],
    [45, 92, 145],
    [29, 35, 44],
    [190, 102, 20],
    [255, 170, 70],
    [255, 232, 190],
  ],
};

function mix(ramp: Ramp, place: number): Rgb {
  const { stops } = ramp;
  const at = Math.max(0, Math.min(1, place)) * (stops.length - 1);
  const low = Math.min(stops.length - 2, Math.floor(at));
  const part = at - low;
  const a = stops[low]!;
  const b = stops[low + 1]!;
  return [0, 1, 2].map((i) => Math.round(a[i]! + (b[i]! - a[i]!) * part)) as unknown as Rgb;
}

// `place`: 0 the least, 1 the most milliseconds.
export function rawColor(place: number, dark: boolean): Rgb {
  return mix(dark ? DARK_RAW : LIGHT_RAW, place);
}

// What is within a twentieth of the median has the colour of the background; half the median is the coldest, and three times it the hottest. Equal
// factors are equal distances.
export const COLDEST = 0.5;
export const HOTTEST = 3;
const CALM = 1.05;

export function relativePlace(ratio: number): number {
  const distance = (factor: number, most: number) => Math.max(0, Math.min(1, Math.log(factor / CALM) / Math.log(most / CALM)));
  return ratio <= 1 ? 0.4 * (1 - distance(1 / ratio, 1 / COLDEST)) : 0.4 + 0.6 * distance(ratio, HOTTEST);
}

export function relativeColor(ratio: number, dark: boolean): Rgb {
  return mix(dark ? DARK_RELATIVE : LIGHT_RELATIVE, relativePlace(ratio));
}

// WCAG's contrast of two colours: 1 to 21.
export function contrast(a: Rgb, b: Rgb): number {
  const luminance = (color: Rgb) => {
    const [r, g, bl] = color.map((part) => {
      const share = part / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    }) as [number, number, number];
    return 0.2126 * r + 0.7152 * g + 0.0722 * bl;
  };
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (high + 0.05) / (low + 0.05);
}
