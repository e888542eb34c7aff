#include "cli/plot/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/rng.h"
#include "base/text.h"
#include "cli/plot/chart.h"
#include "cli/plot/metrics.h"
#include "cli/plot/picture.h"
#include "tests/support/paths.h"

namespace paceline::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

constexpr const char* kLines =
    R"({"type":"step","step":0,"loss":2.5,"learningRate":0.1,"timeSeconds":0.5})"
    "\n"
    R"({"type":"step","step":1,"loss":null,"learningRate":0.1,"timeSeconds":0.6})"
    "\n"
    R"({"type":"memberStep","member":"chief-0","step":1,"inputMs":0.1,"computeMs":3,"waitMs":0.5,"transferMs":0.3,"updateMs":0.1,"stepMs":4})"
    "\n"
    R"({"type":"memberStep","member":"worker-0","step":1,"stepMs":4.5})"
    "\n"
    R"({"type":"step","step":2,"loss":1.5})"
    "\n"
    R"({"type":"step","step":3,"loss":1.25})"
    "\n"
    R"({"type":"memberStep","member":"worker-0","step":3,"stepMs":5})"
    "\n"
    R"({"type":"evaluation","step":3,"loss":1.4,"accuracy":0.5,"timeSeconds":1})"
    "\n"
    R"({"type":"somethingNew","step":3})"
    "\n";

TEST(MetricsTest, Parses) {
  const RunMetrics m = parse_metrics(kLines);
  ASSERT_EQ(m.steps.size(), 4u);
  EXPECT_EQ(m.steps[2].loss, 1.5);
  EXPECT_TRUE(std::isnan(m.steps[1].loss));
  ASSERT_EQ(m.evaluations.size(), 1u);
  EXPECT_EQ(m.evaluations[0].accuracy, 0.5);
  ASSERT_EQ(m.members.size(), 2u);
  EXPECT_EQ(m.members.at("worker-0")[1].step_ms, 5);
}

std::vector<double> steps_of(const auto& points) {
  std::vector<double> steps;
  for (const auto& each : points) steps.push_back(each.step);
  return steps;
}

TEST(MetricsTest, ARunThatGoesOnFromACheckpointReplacesWhatWasBehindIt) {
  std::string text;
  for (const auto& [from, to] : {std::pair{0, 8}, std::pair{5, 7}}) {
    for (int step = from; step < to; ++step) {
      text += str_cat(R"({"type":"step","loss":)", from, R"(,"step":)", step, "}\n");
      text += str_cat(R"({"type":"memberStep","member":"worker-0","stepMs":4,"step":)", step, "}\n");
      if (step % 2 == 1) text += str_cat(R"({"type":"evaluation","loss":)", from, R"(,"step":)", step, "}\n");
    }
    text += str_cat(R"({"type":"memberStep","member":"worker-1","stepMs":4,"step":)", to - 1, "}\n");
  }
  const RunMetrics m = parse_metrics(text);
  EXPECT_THAT(steps_of(m.steps), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_EQ(m.steps[4].loss, 0);
  EXPECT_EQ(m.steps[5].loss, 5);
  EXPECT_THAT(steps_of(m.evaluations), ElementsAre(1, 3, 5));
  EXPECT_EQ(m.evaluations[2].loss, 5);
  EXPECT_THAT(steps_of(m.members.at("worker-0")), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(steps_of(m.members.at("worker-1")), ElementsAre(6));
}

TEST(MetricsTest, AnEvaluationThatComesLateHasItsPlace) {
  const RunMetrics m = parse_metrics(
      "{\"type\":\"evaluation\",\"step\":4,\"loss\":1}\n{\"type\":\"evaluation\",\"step\":2,\"loss\":2}\n");
  EXPECT_THAT(steps_of(m.evaluations), ElementsAre(2, 4));
}

TEST(MetricsTest, TornAndStrangeLinesAreSkipped) {
  const RunMetrics m = parse_metrics(
      str_cat(kLines, "\n[]\n{\"type\":\"step\"}\n{\"step\":1}\n{\"type\":\"step\",\"step\":-1}\n",
              std::string(100000, '['), "\n{\"type\":\"memberStep\",\"step\":1}\n",
              "{\"type\":\"step\",\"step\":4,\"lo"));
  EXPECT_EQ(m.steps.size(), 4u);
  EXPECT_EQ(m.members.size(), 2u);
  for (std::size_t length = 0; length <= std::string(kLines).size(); ++length) {
    EXPECT_LE(parse_metrics(std::string_view(kLines).substr(0, length)).steps.size(), 4u) << length;
  }
}

TEST(MetricsTest, MutatedLinesNeverCrash) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed, 1);
    std::string text = kLines;
    for (int i = 0; i < 5; ++i) text[rng.below(text.size())] = static_cast<char>(rng.next_u64());
    EXPECT_THAT(plot_svg(parse_metrics(text), "x"), ::testing::EndsWith("</svg>\n"));
  }
}

// The picture of a small run, committed. PACELINE_UPDATE_GOLDEN=1 writes it anew.
TEST(PlotTest, GoldenPicture) {
  const std::string path = source_path("tests/unit/cli/plot/golden.svg");
  const std::string svg = plot_svg(parse_metrics(kLines), "fashion-allreduce");
  if (std::getenv("PACELINE_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << svg;
  std::stringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(svg, golden.str());
}

TEST(PlotTest, TextIsEscaped) {
  RunMetrics metrics;
  metrics.members["<script>&\"'\n"] = {{0, 1}, {1, 2}};
  const std::string svg = plot_svg(metrics, "</title><b>");
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;&amp;&quot;&#39;?"));
  EXPECT_THAT(svg, HasSubstr("<title>&lt;/title&gt;&lt;b&gt;</title>"));
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
}

TEST(PlotTest, EmptyAndDegenerateInputs) {
  EXPECT_THAT(plot_svg({}, ""), HasSubstr("no data yet"));
  const double values[] = {0, 1, -1, 1e-300, 1e299, -1e299, kNan, kInf, -kInf, 1e308};
  for (const double a : values) {
    for (const double b : values) {
      RunMetrics metrics;
      metrics.steps = {{0, a}, {0, b}};
      metrics.evaluations = {{5, a, b}};
      metrics.members["worker-0"] = {{0, a}, {1, b}, {2, kNan}};
      const std::string svg = plot_svg(metrics, "x");
      EXPECT_EQ(svg.find("nan"), std::string::npos) << a << " " << b;
      EXPECT_EQ(svg.find("inf"), std::string::npos) << a << " " << b;
      EXPECT_LT(svg.size(), 30000u);
    }
  }
}

TEST(PlotTest, NotFiniteValuesAreGaps) {
  RunMetrics metrics;
  metrics.steps = {{0, 1}, {1, 2}, {2, kInf}, {3, 2}, {4, 1}};
  const std::string svg = plot_svg(metrics, "x");
  const auto begin = svg.find("<path class=\"s0\"");
  const std::string path = svg.substr(begin, svg.find("/>", begin) - begin);
  EXPECT_EQ(std::count(path.begin(), path.end(), 'M'), 2);
  EXPECT_EQ(std::count(path.begin(), path.end(), 'L'), 2);
}

TEST(PlotTest, AMillionPointsAreThinned) {
  RunMetrics metrics;
  for (int i = 0; i < 1000000; ++i)
    metrics.steps.push_back({static_cast<double>(i), i == 777777 ? 99.0 : std::sin(i / 1000.0)});
  const std::string svg = plot_svg(metrics, "long");
  EXPECT_LT(svg.size(), 40000u);
  std::vector<Point> points;
  for (const StepPoint& p : metrics.steps) points.push_back({p.step, p.loss});
  const auto thinned = thin(points, kMaxPointsPerSeries);
  EXPECT_LE(thinned.size(), kMaxPointsPerSeries);
  EXPECT_EQ(thinned.front().x, 0);
  EXPECT_EQ(thinned.back().x, 999999);
  EXPECT_TRUE(std::any_of(thinned.begin(), thinned.end(), [](const Point& p) { return p.y == 99; }))
      << "the peak stays";
  EXPECT_TRUE(std::is_sorted(thinned.begin(), thinned.end(),
                             [](const Point& a, const Point& b) { return a.x < b.x; }));
}

TEST(PlotTest, ASlowFirstStepDoesNotFlattenTheRest) {
  RunMetrics metrics;
  for (int i = 0; i < 200; ++i)
    metrics.members["worker-0"].push_back({static_cast<double>(i), i == 0 ? 900.0 : 4.0});
  const std::string svg = plot_svg(metrics, "x");
  EXPECT_THAT(svg, HasSubstr(">4</text>")) << "the axis ends near 5 ms";
  EXPECT_THAT(svg, Not(HasSubstr(">500</text>")));
}

TEST(PlotTest, OfManyMembersTheSlowestAreDrawn) {
  RunMetrics metrics;
  for (int i = 0; i < 100; ++i) metrics.members[str_cat("worker-", i)] = {{0, 1.0 + i}, {1, 1.0 + i}};
  const std::string svg = plot_svg(metrics, "x");
  EXPECT_THAT(svg, HasSubstr("the 8 slowest of 100"));
  EXPECT_THAT(svg, HasSubstr(">worker-99<"));
  EXPECT_THAT(svg, Not(HasSubstr(">worker-91<")));
}

TEST(PictureTest, ChartsLieOneBelowTheOther) {
  const std::string none = picture("a < b", {}), two = picture("x", {{"first"}, {"second"}});
  EXPECT_THAT(none, HasSubstr("height=\"44\""));
  EXPECT_THAT(none, HasSubstr("<title>a &lt; b</title>"));
  EXPECT_THAT(two, HasSubstr("height=\"624\""));
  EXPECT_LT(two.find(">first<"), two.find("translate(0 334)"));
  EXPECT_GT(two.find(">second<"), two.find("translate(0 334)"));
}

// Seven modes are compared in one picture, with names as long as these.
TEST(ChartTest, EveryLineHasItsName) {
  Chart chart{"t", "x", "y"};
  for (const char* name : {"synchronous", "10 + 6 backups", "first 10 of 16", "bounded, staleness 1",
                           "bounded, staleness 4", "asynchronous", "asynchronous, lambda 0.5"}) {
    chart.series.push_back({name, {{0, 0}, {1, 1}}});
  }
  const std::string svg = draw_chart(chart, 0);
  std::vector<double> rows;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const std::string& name = chart.series[i].name;
    const std::size_t at = svg.find(str_cat("text-anchor=\"start\">", name, "<"));
    ASSERT_NE(at, std::string::npos) << name;
    const std::size_t begin = svg.rfind("x=\"", at);
    double x = 0, y = 0;
    ASSERT_EQ(std::sscanf(svg.c_str() + begin, "x=\"%lf\" y=\"%lf\"", &x, &y), 2);
    EXPECT_LT(x + 6.5 * static_cast<double>(name.size()), kChartWidth) << name;
    rows.push_back(y);
  }
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
  EXPECT_GT(rows.back(), rows.front()) << "one row is too short for them";
  // The highest line of the grid is that of the plotted area, or lies in it.
  double top = kChartHeight;
  for (std::size_t at = svg.find("class=\"g\""); at != std::string::npos;
       at = svg.find("class=\"g\"", at + 1)) {
    double y = 0;
    ASSERT_EQ(std::sscanf(svg.c_str() + svg.find("y1=", at), "y1=\"%lf\"", &y), 1);
    top = std::min(top, y);
  }
  EXPECT_GT(top, rows.back() + 4);
  chart.series.resize(1);
  chart.series[0].name = std::string(5000, 'x');
  EXPECT_THAT(draw_chart(chart, 0), HasSubstr("xxx")) << "alone in its row, however long";
  chart.series.assign(1000, chart.series[0]);
  EXPECT_THAT(draw_chart(chart, 0), HasSubstr("class=\"s0\"")) << "the plotted area stays";
}

// What the y axis shows stands between the legend and the axis: under the names where it would reach them.
TEST(ChartTest, ALongLabelOfTheAxisDoesNotTouchTheLegend) {
  for (const std::string label : {"ms", "correct", "of synchronous", "useful gradients/s"}) {
    Chart chart{.title = "t", .x_label = "x", .y_label = label, .series = {}};
    chart.series.push_back({"synchronous", {{0, 0}, {1, 1}}});
    const std::string svg = draw_chart(chart, 0);
    const auto number = [&](const std::string& key, std::size_t before) {
      const std::size_t at = svg.rfind(key, before);
      return at == std::string::npos ? -1.0 : std::stod(svg.substr(at + key.size()));
    };
    const std::size_t of_label = svg.find(">" + label + "<"), of_name = svg.find(">synchronous<");
    ASSERT_NE(of_label, std::string::npos);
    ASSERT_NE(of_name, std::string::npos);
    const double label_end = number(" x=\"", of_label) + 7.2 * static_cast<double>(label.size());
    const double swatch = number("<rect class=\"d0\" x=\"", of_name);
    const double below = number(" y=\"", of_label) - number(" y=\"", of_name);
    EXPECT_TRUE(label_end <= swatch || below >= 12) << label << " at " << below << " below the names";
  }
}

TEST(ChartTest, TicksAreRoundAndInside) {
  EXPECT_THAT(nice_ticks(0, 10), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(nice_ticks(0, 1999), ElementsAre(0, 500, 1000, 1500));
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Rng rng(seed, 1);
    const double low = (rng.uniform() - 0.5) * std::pow(10.0, static_cast<double>(rng.below(20)) - 10);
    const double high =
        low + (0.01 + rng.uniform()) * std::pow(10.0, static_cast<double>(rng.below(20)) - 10);
    if (!(high - low > 1e-9 * std::abs(low))) continue;
    const auto ticks = nice_ticks(low, high);
    ASSERT_GE(ticks.size(), 2u) << "seed " << seed;
    ASSERT_LE(ticks.size(), 11u) << "seed " << seed;
    for (std::size_t i = 1; i < ticks.size(); ++i) {
      EXPECT_GT(ticks[i], ticks[i - 1]) << "seed " << seed;
      EXPECT_NE(tick_label(ticks[i], ticks[1] - ticks[0]), tick_label(ticks[i - 1], ticks[1] - ticks[0]))
          << "seed " << seed;
    }
  }
  EXPECT_EQ(tick_label(0.30000000000000004, 0.1), "0.3");
  EXPECT_EQ(tick_label(2000, 500), "2000");
  EXPECT_EQ(tick_label(-0.0, 1), "0");
}

constexpr const char* kSeries =
    R"({"step":[0,4],"loss":[2.5,null],"evaluations":[{"step":4,"loss":1,"accuracy":null}]})";
constexpr const char* kMap =
    R"({"steps":[0,2],"members":[{"name":"worker-0"},{"name":"worker-1"}],"values":{"step":[[1,2],[null,3]]}})";

TEST(PlotTest, AnswersOfADashboardAreMetrics) {
  const auto metrics = metrics_of(kSeries, kMap);
  ASSERT_TRUE(metrics);
  ASSERT_EQ(metrics->steps.size(), 2U);
  EXPECT_EQ(metrics->steps[0].loss, 2.5);
  EXPECT_TRUE(std::isnan(metrics->steps[1].loss));
  ASSERT_EQ(metrics->evaluations.size(), 1U);
  EXPECT_EQ(metrics->evaluations[0].loss, 1);
  ASSERT_EQ(metrics->members.at("worker-0").size(), 2U);
  ASSERT_EQ(metrics->members.at("worker-1").size(), 1U);
  EXPECT_EQ(metrics->members.at("worker-1")[0].step, 2);
  EXPECT_EQ(metrics->members.at("worker-1")[0].step_ms, 3);
}

TEST(PlotTest, OtherAnswersAreNoMetrics) {
  for (const char* map :
       {"", "[]", "{}", R"({"members":[],"values":[]})", R"({"members":[{"name":"a"}],"values":{"step":[]}})",
        R"({"steps":[1],"members":[{"name":"a"}],"values":{"step":[[1,2]]}})",
        R"({"steps":[],"members":[{}],"values":{"step":[[]]}})"})
    EXPECT_FALSE(metrics_of(kSeries, map)) << map;
  EXPECT_FALSE(metrics_of(R"({"step":[1],"loss":[]})", kMap));
}

}  // namespace
}  // namespace paceline::cli
