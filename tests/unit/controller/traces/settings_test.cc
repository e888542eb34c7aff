#include "controller/traces/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace paceline::traces {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

absl::StatusOr<std::optional<Settings>> settings(const std::map<std::string, std::string>& variables) {
  return settings_of([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(TraceSettingsTest, NoTracesUnlessAnEndpointIsNamed) {
  EXPECT_EQ(settings({})->has_value(), false);
  EXPECT_EQ(settings({{"OTEL_EXPORTER_OTLP_ENDPOINT", ""}})->has_value(), false);
  EXPECT_EQ(settings({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"}, {"OTEL_SDK_DISABLED", "true"}})
                ->has_value(),
            false);
  EXPECT_EQ(settings({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"}, {"OTEL_TRACES_EXPORTER", "none"}})
                ->has_value(),
            false);
}

TEST(TraceSettingsTest, PathOfTracesStandsBehindTheCommonEndpoint) {
  for (const char* url : {"http://c:4318", "http://c:4318/"}) {
    const auto found = settings({{"OTEL_EXPORTER_OTLP_ENDPOINT", url}});
    ASSERT_TRUE(found.ok() && *found) << found.status();
    EXPECT_EQ((*found)->server, "http://c:4318");
    EXPECT_EQ((*found)->path, "/v1/traces");
    EXPECT_EQ((*found)->service, "paceline");
  }
  EXPECT_EQ((*settings({{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://c/otlp"}}))->path, "/otlp/v1/traces");
}

TEST(TraceSettingsTest, EndpointOfTracesIsTakenAsItIs) {
  const auto found = settings({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"},
                               {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://t/in"},
                               {"OTEL_SERVICE_NAME", "night"}});
  ASSERT_TRUE(found.ok() && *found) << found.status();
  EXPECT_EQ((*found)->server, "https://t");
  EXPECT_EQ((*found)->path, "/in");
  EXPECT_EQ((*found)->service, "night");
}

TEST(TraceSettingsTest, HeadersArePercentEncoded) {
  const auto found = settings({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"},
                               {"OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b%3D, x = y ,"}});
  ASSERT_TRUE(found.ok() && *found) << found.status();
  EXPECT_THAT((*found)->headers, ElementsAre(Pair("api-key", "a b="), Pair("x", "y")));
}

TEST(TraceSettingsTest, WrongVariablesAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector:4318"},
      {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://"},
      {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"},
      {"OTEL_TRACES_EXPORTER", "zipkin"},
      {"OTEL_EXPORTER_OTLP_HEADERS", "no-value"},
      {"OTEL_EXPORTER_OTLP_HEADERS", "key=%zz"},
      {"OTEL_EXPORTER_OTLP_HEADERS", "key=%0d%0aother"}};
  for (const auto& [name, value] : cases) {
    const auto found = settings({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"}, {name, value}});
    EXPECT_TRUE(absl::IsInvalidArgument(found.status())) << name << " " << value;
    EXPECT_THAT(found.status().message(), HasSubstr(name));
  }
}

TEST(TraceSettingsTest, ErrorsDoNotShowWhatHeadersHold) {
  const auto found = settings(
      {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"}, {"OTEL_EXPORTER_OTLP_HEADERS", "key=secret%"}});
  EXPECT_THAT(found.status().message(), Not(HasSubstr("secret")));
  const auto user = settings({{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://me:secret@c:4318/x"}});
  EXPECT_TRUE(absl::IsInvalidArgument(user.status()));
  EXPECT_THAT(user.status().message(), Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace paceline::traces
