#include "controller/dashboard/job_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace paceline::dashboard {
namespace {

using kube::Json;

Json object(const std::string& name, const std::string& uid, int step = 0) {
  return {{"metadata", {{"namespace", "a"}, {"name", name}, {"uid", uid}}}, {"status", {{"step", step}}}};
}

std::string row(const std::string& name) {
  return str_cat("{\"name\":\"", name, "\"}");
}

std::vector<std::string> names_in(const Json& rows) {
  std::vector<std::string> names;
  for (const Json& each : rows) names.push_back(each["name"]);
  return names;
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(JobTableTest, OnlyChangesAreNews) {
  JobTable table;
  EXPECT_TRUE(table.put(object("x", "1"), row("x")));
  EXPECT_FALSE(table.put(object("x", "1"), row("x")));
  const std::uint64_t version = table.version();
  EXPECT_FALSE(table.has_news(version));
  EXPECT_TRUE(table.put(object("x", "1", 5), row("x"))) << "the object, but not its row";
  EXPECT_FALSE(table.has_news(version));
  EXPECT_EQ(table.find("a/x")->changed, table.version());
  EXPECT_TRUE(table.put(object("x", "1", 5), row("xx")));
  EXPECT_TRUE(table.has_news(version));
}

TEST(JobTableTest, DeltasHaveWhatChangedSince) {
  JobTable table;
  table.put(object("x", "1"), row("x"));
  table.put(object("y", "2"), row("y"));
  const std::uint64_t before = table.version();
  table.put(object("z", "3"), row("z"));
  table.remove("a/x");
  const Json delta = Json::parse(table.delta_json(before));
  EXPECT_FALSE(delta["full"]);
  EXPECT_THAT(names_in(delta["rows"]), ElementsAre("z"));
  EXPECT_EQ(delta["removed"], Json({"1"}));
  EXPECT_EQ(delta["version"], str_cat(table.version()));
  const Json all = Json::parse(table.delta_json(0));
  EXPECT_TRUE(all["full"]);
  EXPECT_THAT(names_in(all["rows"]), ElementsAre("y", "z"));
  EXPECT_THAT(all["removed"], IsEmpty());
}

TEST(JobTableTest, ReadersWhoKnowNoVersionOfOursGetAll) {
  JobTable table;
  table.put(object("x", "1"), row("x"));
  EXPECT_TRUE(Json::parse(table.delta_json(table.version() + 1))["full"]);
}

TEST(JobTableTest, ReadersWhoMissedTooManyRemovalsGetAll) {
  JobTable table;
  table.put(object("first", "0"), row("first"));
  const std::uint64_t before = table.version();
  for (std::size_t i = 0; i <= JobTable::kRemovals; ++i) {
    table.put(object("x", str_cat(i)), row("x"));
    table.remove("a/x");
  }
  EXPECT_TRUE(Json::parse(table.delta_json(before))["full"]);
  EXPECT_FALSE(Json::parse(table.delta_json(table.version() - 2))["full"]);
}

TEST(JobTableTest, JobsMadeAgainUnderTheirUidAreThere) {
  JobTable table;
  table.put(object("x", "1"), row("x"));
  const std::uint64_t before = table.version();
  table.remove("a/x");
  table.put(object("x", "1"), row("x"));
  const Json delta = Json::parse(table.delta_json(before));
  EXPECT_THAT(delta["removed"], IsEmpty());
  EXPECT_THAT(names_in(delta["rows"]), ElementsAre("x"));
}

TEST(JobTableTest, AnotherUidIsAnotherJob) {
  JobTable table;
  table.put(object("x", "1"), row("x"));
  const std::uint64_t before = table.version();
  table.put(object("x", "2"), row("x"));
  const Json delta = Json::parse(table.delta_json(before));
  EXPECT_EQ(delta["removed"], Json({"1"}));
  EXPECT_THAT(names_in(delta["rows"]), ElementsAre("x"));
}

TEST(JobTableTest, ListsTellWhatIsLeftOut) {
  JobTable table;
  EXPECT_TRUE(table.set_left_out({"runs/x: damaged"}));
  EXPECT_FALSE(table.set_left_out({"runs/x: damaged"}));
  EXPECT_EQ(Json::parse(table.list_json())["leftOut"], Json({"runs/x: damaged"}));
  EXPECT_THAT(Json::parse(table.list_json())["jobs"], IsEmpty());
}

TEST(JobTableTest, DeltasTellWhatIsLeftOutOnce) {
  JobTable table;
  table.put(object("x", "1"), row("x"));
  EXPECT_EQ(Json::parse(table.delta_json(0))["leftOut"], Json::array());
  const std::uint64_t before = table.version();
  const auto namespaces = std::make_shared<const std::set<std::string>>(std::set<std::string>{"a"});
  for (const Json& left_out : {Json::array({"runs/y: damaged"}), Json::array()}) {
    const std::uint64_t known = table.version();
    EXPECT_TRUE(table.set_left_out(left_out.get<std::vector<std::string>>()));
    EXPECT_TRUE(table.has_news(known));
    EXPECT_TRUE(table.has_news(known, namespaces));
    EXPECT_EQ(Json::parse(table.delta_json(known))["leftOut"], left_out);
  }
  EXPECT_FALSE(table.has_news(table.version(), namespaces));
  EXPECT_TRUE(Json::parse(table.delta_json(before)).contains("leftOut"));
  const std::uint64_t known = table.version();
  table.put(object("x", "1", 5), row("xx"));
  EXPECT_FALSE(Json::parse(table.delta_json(known)).contains("leftOut"));
}

TEST(JobTableTest, ReadersSeeTheirNamespacesAlone) {
  JobTable table;
  const auto in_b = [](const std::string& name) {
    Json of = object(name, name);
    of["metadata"]["namespace"] = "b";
    return of;
  };
  const auto only = [](const char* ns) {
    return std::make_shared<const std::set<std::string>>(std::set<std::string>{ns});
  };
  table.put(object("x", "1"), row("x"));
  table.put(in_b("y"), row("y"));
  EXPECT_THAT(names_in(Json::parse(table.list_json(only("a")))["jobs"]), ElementsAre("x"));
  EXPECT_THAT(names_in(Json::parse(table.delta_json(0, only("b")))["rows"]), ElementsAre("y"));
  EXPECT_THAT(Json::parse(table.list_json(only("c")))["jobs"], IsEmpty());
  const std::uint64_t before = table.version();
  table.remove("b/y");
  EXPECT_FALSE(table.has_news(before, only("a")));
  EXPECT_TRUE(table.has_news(before, only("b")));
  EXPECT_THAT(Json::parse(table.delta_json(before, only("a")))["removed"], IsEmpty());
  EXPECT_EQ(Json::parse(table.delta_json(before, only("b")))["removed"], Json({"y"}));
}

}  // namespace
}  // namespace paceline::dashboard
