#pragma once

// A line chart as a piece of SVG. Pure.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::cli {

struct Point {
  double x = 0;
  double y = 0;  // not finite: the line has a gap here
};

struct Series {
  std::string name;
  std::vector<Point> points;  // by rising x
  bool marks = false;         // a dot at every point: for few points
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series;
  bool from_zero = false;  // the y axis begins at 0
  bool cut_outliers =
      false;  // the y axis ends a little above 99 % of the points; what is above leaves the picture
};

inline constexpr int kChartWidth = 860;
inline constexpr int kChartHeight = 290;
inline constexpr std::size_t kMaxPointsPerSeries = 1200;  // about two for each pixel column

// At most `limit` points that draw the same picture: of each run of neighbours the lowest and the highest,
// and the first and the last of all. A run without a finite point leaves one gap.
std::vector<Point> thin(const std::vector<Point>& points, std::size_t limit);

// 3 to 11 round numbers (1, 2 or 5 times a power of ten apart) inside [low, high]. REQUIRES: finite, low <
// high.
std::vector<double> nice_ticks(double low, double high);

// `value` with as many decimals as ticks `spacing` apart need.
std::string tick_label(double value, double spacing);

// The text with XML's special characters escaped and control characters replaced.
std::string escape_xml(std::string_view text);

// A <g> of kChartWidth x kChartHeight at `top`. It uses the classes that plot_svg() defines: t (text), m
// (muted text), g (grid), a (axis), s0 to s7 (lines), d0 to d7 (dots and legend). Without a finite point it
// says "no data yet".
std::string draw_chart(const Chart& chart, int top);

}  // namespace paceline::cli
