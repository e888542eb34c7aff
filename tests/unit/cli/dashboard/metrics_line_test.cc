#include "cli/dashboard/metrics_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace paceline::cli {
namespace {

TEST(MetricsLineTest, LinesOfAllTypesAreTaken) {
  dashboard::JobSeries series;
  for (const char* line :
       {R"({"type":"view","generation":1,"members":["worker-1","worker-0"]})",
        R"({"type":"step","step":3,"loss":0.5,"learningRate":0.1,"timeSeconds":1.5})",
        R"({"type":"memberStep","member":"worker-0","step":3,"inputMs":1,"computeMs":2,"waitMs":3,)"
        R"("transferMs":4,"updateMs":5,"checkpointMs":6,"stepMs":21})",
        R"({"type":"memberStep","member":"worker-1","step":4,"stepMs":7})",
        R"({"type":"evaluation","step":3,"loss":0.25,"accuracy":0.9,"timeSeconds":2})"})
    EXPECT_TRUE(add_metrics_line(line, series)) << line;
  EXPECT_EQ(series.newest(), 4);
  EXPECT_EQ(series.points(10).loss, std::vector<double>{0.5});
  EXPECT_EQ(series.evaluations().at(0).accuracy, 0.9);
  const auto map = series.heat_map(3, 3, 1);
  EXPECT_EQ(map.members, (std::vector<std::string>{"worker-1", "worker-0"}));
  for (std::size_t part = 0; part < 6; ++part) EXPECT_EQ(map.ms[part][1], static_cast<float>(part + 1));
  EXPECT_EQ(map.ms[6][1], 21);
}

TEST(MetricsLineTest, LossesThatAreNotFiniteAreNotKnown) {
  dashboard::JobSeries series;
  EXPECT_TRUE(add_metrics_line(R"({"type":"step","step":3,"loss":null})", series));
  EXPECT_TRUE(std::isnan(series.points(10).loss.at(0)));
}

TEST(MetricsLineTest, OtherLinesArePassedOver) {
  dashboard::JobSeries series;
  for (const std::string& line :
       {std::string(), std::string("{"), std::string("[]"), std::string("3"),
        std::string(R"({"type":"step"})"), std::string(R"({"type":"step","step":-1})"),
        std::string(R"({"type":"step","step":9007199254740993})"),
        std::string(R"({"type":"step","step":9223372036854775807})"),
        std::string(R"({"type":"memberStep","member":"worker-0","step":9223372036854775807,"stepMs":7})"),
        std::string(R"({"type":"step","step":"3"})"), std::string(R"({"type":"new","step":3})"),
        std::string(R"({"type":"memberStep","step":3})"), std::string(100, '['), std::string(100'000, ' '),
        std::string("\xff\xfe")})
    EXPECT_FALSE(add_metrics_line(line, series)) << line.substr(0, 40);
  EXPECT_EQ(series.version(), 0U);
}

}  // namespace
}  // namespace paceline::cli
