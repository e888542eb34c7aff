#include "cli/plot/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/text.h"

namespace paceline::cli {

namespace {

constexpr double kLeft = 70, kRight = 24, kTop = 52, kBottom = 42;  // margins around the plotted area
constexpr double kLabelLeft = 8;                                    // of the y axis, above it
constexpr int kColours = 8;
constexpr double kLegendStep = 7.2;  // pixels per letter, about
constexpr double kLegendRow = 14;    // further rows move the plotted area down
constexpr std::size_t kMaxLegendRows = 4;
constexpr std::size_t kMaxTicks = 11;
constexpr std::size_t kFewestForOutliers = 20;
constexpr double kLargest = 1e300;  // beyond it, differences overflow

bool drawable(double value) {
  return std::abs(value) < kLargest;
}  // false for NaN

// A coordinate with at most one decimal.
std::string px(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", value);
  std::string result(text);
  if (result.ends_with(".0")) result.resize(result.size() - 2);
  return result == "-0" ? "0" : result;
}

struct Range {
  double low = 0, high = 1;
  void widen() {
    const double least = 1e-9 * std::max(std::abs(low), std::abs(high)) + 1e-12;
    if (high - low >= least) return;
    const double half = low == 0 ? 0.5 : std::abs(low) * 0.05;
    low -= half;
    high += half;
  }
};

struct Ranges {
  Range x, y;
  bool any = false;
};

Ranges ranges_of(const Chart& chart) {
  Ranges ranges;
  std::vector<double> values;
  for (const Series& series : chart.series) {
    for (const Point& p : series.points) {
      if (!drawable(p.x) || !drawable(p.y)) continue;
      if (values.empty()) ranges.x = {p.x, p.x};
      ranges.x.low = std::min(ranges.x.low, p.x);
      ranges.x.high = std::max(ranges.x.high, p.x);
      values.push_back(p.y);
    }
  }
  if (values.empty()) return ranges;
  ranges.any = true;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  ranges.y = {*low, *high};
  if (chart.cut_outliers && values.size() >= kFewestForOutliers) {
    const auto at = static_cast<std::ptrdiff_t>(values.size() * 99 / 100);
    std::nth_element(values.begin(), values.begin() + at, values.end());
    const double usual = values[static_cast<std::size_t>(at)];
    if (usual > 0) ranges.y.high = std::min(ranges.y.high, usual * 1.25);
  }
  if (chart.from_zero) ranges.y.low = std::min(ranges.y.low, 0.0);
  ranges.x.widen();
  ranges.y.widen();
  if (!chart.from_zero) ranges.y.low -= (ranges.y.high - ranges.y.low) * 0.05;
  ranges.y.high += (ranges.y.high - ranges.y.low) * 0.05;
  return ranges;
}

// From values to pixels within the chart.
struct Scale {
  Range x, y;
  double top = kTop;
  double px_x(double value) const {
    return kLeft + (value - x.low) / (x.high - x.low) * (kChartWidth - kLeft - kRight);
  }
  double px_y(double value) const {
    const double part = (value - y.low) / (y.high - y.low);
    const double pixel = kChartHeight - kBottom - part * (kChartHeight - top - kBottom);
    return std::clamp(pixel, -10.0 * kChartHeight,
                      10.0 * kChartHeight);  // far outliers stay within what viewers can draw
  }
};

std::string label(double x, double y, std::string_view anchor, std::string_view style,
                  std::string_view text) {
  return str_cat("<text class=\"", style, "\" x=\"", px(x), "\" y=\"", px(y), "\" text-anchor=\"", anchor,
                 "\">", text, "</text>\n");
}

std::string line(std::string_view style, double x1, double y1, double x2, double y2) {
  return str_cat("<line class=\"", style, "\" x1=\"", px(x1), "\" y1=\"", px(y1), "\" x2=\"", px(x2),
                 "\" y2=\"", px(y2), "\"/>\n");
}

std::string draw_axes(const Chart& chart, const Scale& scale) {
  const double bottom = kChartHeight - kBottom, right = kChartWidth - kRight;
  std::string svg;
  const auto ys = nice_ticks(scale.y.low, scale.y.high);
  for (const double y : ys) {
    svg += line("g", kLeft, scale.px_y(y), right, scale.px_y(y));
    svg += label(kLeft - 8, scale.px_y(y) + 4, "end", "m", tick_label(y, ys[1] - ys[0]));
  }
  const auto xs = nice_ticks(scale.x.low, scale.x.high);
  for (const double x : xs) {
    svg += line("a", scale.px_x(x), bottom, scale.px_x(x), bottom + 4);
    svg += label(scale.px_x(x), bottom + 18, "middle", "m", tick_label(x, xs[1] - xs[0]));
  }
  svg += line("a", kLeft, bottom, right, bottom);
  svg += label((kLeft + right) / 2, bottom + 35, "middle", "m", escape_xml(chart.x_label));
  svg += label(kLabelLeft, scale.top - 10, "start", "m", escape_xml(chart.y_label));
  return svg;
}

std::string draw_series(const Series& series, std::size_t number, const Scale& scale) {
  const std::vector<Point> points = thin(series.points, kMaxPointsPerSeries);
  std::string path, dots;
  bool pen_down = false;
  for (const Point& p : points) {
    if (!drawable(p.x) || !drawable(p.y)) {
      pen_down = false;
      continue;
    }
    const std::string x = px(scale.px_x(p.x)), y = px(scale.px_y(p.y));
    path += str_cat(pen_down ? "L" : "M", x, " ", y);
    pen_down = true;
    if (series.marks)
      dots += str_cat("<circle class=\"d", number % kColours, "\" cx=\"", x, "\" cy=\"", y, "\" r=\"3\"/>\n");
  }
  if (path.empty()) return "";
  return str_cat("<path class=\"s", number % kColours, "\" d=\"", path, "\"/>\n", dots);
}

struct LegendPlace {
  double x = 0;
  std::size_t row = 0;
};

// Of each line's name, from left to right; those for which there is no row are drawn without one.
std::vector<LegendPlace> legend_places(const Chart& chart) {
  std::vector<LegendPlace> places;
  double x = kLeft;
  std::size_t row = 0;
  for (const Series& series : chart.series) {
    const double width = 26 + kLegendStep * static_cast<double>(series.name.size());
    if (x > kLeft && x + width > kChartWidth - kRight) {
      x = kLeft;
      ++row;
    }
    if (row == kMaxLegendRows) break;
    places.push_back({x, row});
    x += width;
  }
  return places;
}

std::string draw_legend(const Chart& chart, const std::vector<LegendPlace>& places) {
  std::string svg;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const double y = 36 + kLegendRow * static_cast<double>(places[i].row);
    svg += str_cat("<rect class=\"d", i % kColours, "\" x=\"", px(places[i].x), "\" y=\"", px(y - 8),
                   "\" width=\"12\" height=\"4\"/>\n");
    svg += label(places[i].x + 16, y, "start", "m", escape_xml(chart.series[i].name));
  }
  return svg;
}

}  // namespace

std::vector<Point> thin(const std::vector<Point>& points, std::size_t limit) {
  if (points.size() <= limit || limit < 4) return points;
  const std::size_t runs = (limit - 2) / 2;
  std::vector<Point> kept{points.front()};
  for (std::size_t run = 0; run < runs; ++run) {
    const std::size_t begin = run * points.size() / runs, end = (run + 1) * points.size() / runs;
    std::size_t low = end, high = end;
    for (std::size_t i = begin; i < end; ++i) {
      if (!drawable(points[i].x) || !drawable(points[i].y)) continue;
      if (low == end || points[i].y < points[low].y) low = i;
      if (high == end || points[i].y > points[high].y) high = i;
    }
    if (low == end) {
      kept.push_back(points[begin]);
    } else {
      kept.push_back(points[std::min(low, high)]);
      if (low != high) kept.push_back(points[std::max(low, high)]);
    }
  }
  kept.push_back(points.back());
  return kept;
}

std::vector<double> nice_ticks(double low, double high) {
  const double rough = (high - low) / 5;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double spacing = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough) spacing = factor * power;
  }
  std::vector<double> ticks;
  const double first = std::ceil(low / spacing - 1e-9);
  while (ticks.size() < kMaxTicks) {
    const double tick = (first + static_cast<double>(ticks.size())) * spacing;
    if (tick > high + spacing * 1e-9) break;
    ticks.push_back(tick);
  }
  return ticks;
}

std::string tick_label(double value, double spacing) {
  const double magnitude = std::max(std::abs(value), spacing);
  char text[64];
  if (magnitude >= 1e7 || spacing < 1e-5) {
    const double digits = std::ceil(std::log10(magnitude / spacing) - 1e-9);
    std::snprintf(text, sizeof(text), "%.*g", static_cast<int>(std::clamp(digits + 1, 1.0, 15.0)), value);
  } else {
    const int decimals = std::max(0, static_cast<int>(-std::floor(std::log10(spacing) + 1e-9)));
    std::snprintf(text, sizeof(text), "%.*f", decimals, value == 0 ? 0.0 : value);
  }
  return text;
}

std::string escape_xml(std::string_view text) {
  constexpr std::string_view kSpecial = "&<>\"'";
  constexpr const char* kEntities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
  std::string escaped;
  for (const char c : text) {
    const std::size_t special = kSpecial.find(c);
    const bool control = static_cast<unsigned char>(c) < ' ' || c == 127;
    escaped += special < kSpecial.size() ? kEntities[special] : std::string(1, control ? '?' : c);
  }
  return escaped;
}

std::string draw_chart(const Chart& chart, int top) {
  std::string svg = str_cat("<g transform=\"translate(0 ", top, ")\">\n");
  svg += label(8, 18, "start", "t", escape_xml(chart.title));
  const Ranges ranges = ranges_of(chart);
  if (!ranges.any) {
    svg += label(kChartWidth / 2.0, kChartHeight / 2.0, "middle", "m", "no data yet");
    return svg + "</g>\n";
  }
  const std::vector<LegendPlace> legend = legend_places(chart);
  const double label_end = kLabelLeft + kLegendStep * static_cast<double>(chart.y_label.size());
  const std::size_t label_row = !legend.empty() && label_end > kLeft ? 1 : 0;  // else it stands beside them
  const std::size_t more_rows = (legend.empty() ? 0 : legend.back().row) + label_row;
  const Scale scale{ranges.x, ranges.y, kTop + kLegendRow * static_cast<double>(more_rows)};
  svg += draw_legend(chart, legend);
  svg += draw_axes(chart, scale);
  svg += "<g clip-path=\"url(#area)\">\n";
  for (std::size_t i = 0; i < chart.series.size(); ++i) svg += draw_series(chart.series[i], i, scale);
  return svg + "</g>\n</g>\n";
}

}  // namespace paceline::cli
