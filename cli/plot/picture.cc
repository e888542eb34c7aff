#include "cli/plot/picture.h"

#include "base/text.h"

namespace paceline::cli {

namespace {

constexpr int kTitleHeight = 44;

// Neutral ground, and eight colours that tell apart on both (after Okabe and Ito 2008, which also
// colour-blind eyes tell apart).
constexpr const char* kStyle = R"(<style>
svg { background: #ffffff; font-family: system-ui, sans-serif; }
.h { font-size: 18px; font-weight: 600; fill: #24292f; } .t { font-size: 14px; font-weight: 600; fill: #24292f; }
.m { font-size: 12px; fill: #57606a; } .g { stroke: #d8dee4; } .a { stroke: #8c959f; }
path { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
.s0 { stroke: #0072b2; } .s1 { stroke: #d55e00; } .s2 { stroke: #009e73; } .s3 { stroke: #cc79a7; }
.s4 { stroke: #b8860b; } .s5 { stroke: #56b4e9; } .s6 { stroke: #7b61c9; } .s7 { stroke: #7f7f7f; }
.d0 { fill: #0072b2; } .d1 { fill: #d55e00; } .d2 { fill: #009e73; } .d3 { fill: #cc79a7; }
.d4 { fill: #b8860b; } .d5 { fill: #56b4e9; } .d6 { fill: #7b61c9; } .d7 { fill: #7f7f7f; }
@media (prefers-color-scheme: dark) {
svg { background: #0d1117; } .h, .t { fill: #e6edf3; } .m { fill: #9198a1; } .g { stroke: #2a313c; } .a { stroke: #656c76; }
.s0 { stroke: #4ba3e3; } .d0 { fill: #4ba3e3; } .s6 { stroke: #a48ff0; } .d6 { fill: #a48ff0; } }
</style>
)";

}  // namespace

std::string picture(std::string_view title, const std::vector<Chart>& charts) {
  const int height = kTitleHeight + kChartHeight * static_cast<int>(charts.size());
  std::string svg = str_cat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", kChartWidth, " ",
                            height, "\" width=\"", kChartWidth, "\" height=\"", height,
                            "\" role=\"img\">\n<title>", escape_xml(title), "</title>\n", kStyle);
  svg += str_cat("<clipPath id=\"area\"><rect x=\"70\" y=\"48\" width=\"", kChartWidth - 70 - 20,
                 "\" height=\"", kChartHeight - 48 - 40, "\"/></clipPath>\n");
  svg += str_cat("<text class=\"h\" x=\"8\" y=\"28\">", escape_xml(title), "</text>\n");
  for (std::size_t i = 0; i < charts.size(); ++i) {
    svg += draw_chart(charts[i], kTitleHeight + kChartHeight * static_cast<int>(i));
  }
  return svg + "</svg>\n";
}

}  // namespace paceline::cli
