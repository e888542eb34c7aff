#include "controller/web/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace paceline::web {
namespace {

using ::testing::HasSubstr;

TEST(MetricsTest, TextIsAsPrometheusReadsIt) {
  Metrics metrics;
  metrics.counter("requests_total", "Line one.\nLine two \\.");
  metrics.gauge("depth", "How deep.");
  metrics.histogram("time_seconds", "How long.", {0.5, 1});
  metrics.add("requests_total", {{"code", "200"}, {"method", "GET"}}, 2);
  metrics.add("requests_total", {{"code", "a\"b\\c\nd"}, {"method", "GET"}});
  metrics.set("depth", {}, -1.5);
  metrics.set("depth", {}, 3);
  for (const double t : {0.5, 0.7, 2.0}) metrics.observe("time_seconds", {{"name", "x"}}, t);
  EXPECT_EQ(metrics.text(),
            "# HELP depth How deep.\n"
            "# TYPE depth gauge\n"
            "depth 3\n"
            "# HELP requests_total Line one.\\nLine two \\\\.\n"
            "# TYPE requests_total counter\n"
            "requests_total{code=\"200\",method=\"GET\"} 2\n"
            "requests_total{code=\"a\\\"b\\\\c\\nd\",method=\"GET\"} 1\n"
            "# HELP time_seconds How long.\n"
            "# TYPE time_seconds histogram\n"
            "time_seconds_bucket{name=\"x\",le=\"0.5\"} 1\n"
            "time_seconds_bucket{name=\"x\",le=\"1\"} 2\n"
            "time_seconds_bucket{name=\"x\",le=\"+Inf\"} 3\n"
            "time_seconds_sum{name=\"x\"} 3.2\n"
            "time_seconds_count{name=\"x\"} 3\n");
}

TEST(MetricsTest, SeriesAreBounded) {
  Metrics metrics;
  metrics.counter("c", "");
  for (std::size_t i = 0; i < kMaxSeries + 50; ++i) metrics.add("c", {{"l", std::to_string(i)}});
  const std::string text = metrics.text();
  EXPECT_EQ(std::ranges::count(text, '\n'), static_cast<std::ptrdiff_t>(kMaxSeries + 3));
  EXPECT_THAT(text, HasSubstr("c{l=\"other\"} 50\n"));
}

}  // namespace
}  // namespace paceline::web
