#include "controller/cluster/kube/status_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/limits.h"
#include "base/text.h"
#include "controller/cluster/kube/times.h"
#include "tests/support/filled.h"

namespace paceline::kube {
namespace {

api::Status full() {
  api::Status status;
  status.phase = api::Phase::kRunning;
  status.reason = "MembersTrain";
  status.message = "all train";
  status.conditions = {
      {"Running", true, "MembersTrain", "all train", *parse_time("2026-01-31T12:00:00.250Z"), {2}},
      {"Failed", false, "", "", *parse_time("2026-01-31T11:00:00Z")}};
  status.observed_generation = {3};
  status.replica_statuses = {{Role::kWorker, 4, 3, 2, 1}, {Role::kServer, 1, 1, 0, 0}};
  status.restarts = {5,
                     4,
                     2,
                     1,
                     7,
                     {{Role::kWorker, api::RestartCause::kEvicted, 6}},
                     {{Role::kServer, 1, 3}},
                     parse_time("2026-01-31T12:30:00Z")};
  using enum api::ObservationKind;
  status.fault = api::Fault{.kind = api::FaultKind::kFrozen,
                            .role = Role::kWorker,
                            .index = 1,
                            .rank = 2,
                            .pod = "j-worker-1-4",
                            .host = "node-2",
                            .step = 1200,
                            .exit_code = 1,
                            .evidence = {{kSilent, "5s"}, {kNodeNotReady, ""}},
                            .victims = {{Role::kServer, 3, {kLostLink, "worker-1"}},
                                        {Role::kWorker, 0, {kPodEnded, ""}, {}, 9, true}},
                            .more_victims = 5,
                            .provisional_since = parse_time("2026-01-31T12:25:00.125Z")};
  status.view = {{7}, 4};
  status.progress = {120, 2000, 1.5, 0.25, 0.5, 0.875, 0.75, 5120.5, 64, 0.96875, 30.5};
  status.members = {{Role::kChief,
                     0,
                     0,
                     "j-chief-0-0",
                     "node-1",
                     17,
                     "Training",
                     120,
                     {.staleness = {{9, 8, 7, 0.5, 0.75, {6, 0, 3}}},
                      .gpu = {{.name = "NVIDIA H200", .uncorrected_ecc_errors = 0}}}},
                    {Role::kServer,
                     2,
                     -1,
                     "j-ps-2-0",
                     "node-2",
                     0,
                     "Waiting",
                     119,
                     {.server = {{0.25, 1e6, 2, 3, 4, 10, 11, {{"users", 5, 6}}}}}}};
  status.last_checkpoint = "/checkpoints/100";
  status.model = "/model";
  status.start_time = parse_time("2026-01-31T10:00:00.001Z");
  status.completion_time = parse_time("2026-01-31T13:00:00Z");
  return status;
}

TEST(StatusJsonTest, GoesThereAndBack) {
  EXPECT_EQ(status_from_json(status_to_json(full())), full());
  api::Status all = filled<api::Status>();  // each field has a value of its own
  for (api::Condition& condition : all.conditions) condition.type = "Running";
  EXPECT_EQ(status_from_json(status_to_json(all)), all);
  EXPECT_EQ(status_from_json(status_to_json(api::Status())), api::Status());
  api::Status replaced;  // by request: nobody knows how slow it was
  replaced.straggler_replacements = {{.cause = api::StragglerCause::kRequested}};
  EXPECT_FALSE(status_to_json(replaced)["stragglerReplacements"][0].contains("factor"));
  EXPECT_EQ(status_from_json(status_to_json(replaced)), replaced);
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(api::Phase::kSuspended); ++i) {
    api::Status status;
    status.phase = static_cast<api::Phase>(i);
    EXPECT_EQ(status_from_json(status_to_json(status)).phase, status.phase);
    names.insert(status_to_json(status)["phase"]);
  }
  EXPECT_EQ(names.size(), 7u);
  api::Status accepted;
  accepted.conditions = {{"Created", true, "Accepted", "", *parse_time("2026-01-31T12:00:00Z"), {1}}};
  EXPECT_EQ(status_from_json(status_to_json(accepted)), accepted);
}

// Somebody else's: whatever is applied is owned.
TEST(StatusJsonTest, ConditionsThatAreNotOursAreReadAndNotWritten) {
  const Json json = {
      {"conditions",
       {{{"type", "QuotaReserved"}, {"status", "Unknown"}}, {{"type", "Running"}, {"status", "False"}}}}};
  api::Status status = status_from_json(json);
  ASSERT_EQ(status.conditions.size(), 2u);
  EXPECT_EQ(status.conditions[0].type, "QuotaReserved");
  EXPECT_TRUE(status.conditions[0].unknown);
  const Json written = status_to_json(status);
  ASSERT_EQ(written["conditions"].size(), 1u);
  EXPECT_EQ(written["conditions"][0]["type"], "Running");
  status.conditions.pop_back();
  EXPECT_FALSE(status_to_json(status).contains("conditions"));
}

TEST(StatusJsonTest, AConditionIsTrueFalseOrUnknown) {
  for (const char* word : {"True", "False", "Unknown"}) {
    const api::Status status = status_from_json({{"conditions", {{{"type", "Running"}, {"status", word}}}}});
    ASSERT_EQ(status.conditions.size(), 1u);
    EXPECT_EQ(status.conditions[0].status, word == std::string("True"));
    EXPECT_EQ(status.conditions[0].unknown, word == std::string("Unknown"));
    EXPECT_EQ(status_to_json(status)["conditions"][0]["status"], word);
  }
}

TEST(StatusJsonTest, HasTheNamesOfTheDesign) {
  const Json json = status_to_json(full());
  EXPECT_EQ(json["phase"], "Running");
  EXPECT_EQ(json["conditions"][0]["status"], "True");
  EXPECT_EQ(json["conditions"][1]["status"], "False");
  EXPECT_EQ(json["conditions"][0]["lastTransitionTime"], "2026-01-31T12:00:00.250Z");
  EXPECT_EQ(json["restarts"]["total"], 7);
  EXPECT_EQ(json["fault"],
            (Json{{"kind", "Frozen"},
                  {"role", "worker"},
                  {"index", 1},
                  {"rank", 2},
                  {"cause", "Silent"},
                  {"pod", "j-worker-1-4"},
                  {"host", "node-2"},
                  {"step", 1200},
                  {"exitCode", 1},
                  {"evidence", {{{"kind", "Silent"}, {"detail", "5s"}}, {{"kind", "NodeNotReady"}}}},
                  {"victims",
                   {{{"kind", "LostLink"}, {"detail", "worker-1"}, {"role", "ps"}, {"index", 3}},
                    {{"kind", "PodEnded"}, {"role", "worker"}, {"index", 0}, {"signal", 9}, {"same", true}}}},
                  {"moreVictims", 5},
                  {"provisionalSince", "2026-01-31T12:25:00.125Z"}}));
  EXPECT_EQ(json["replicaStatuses"][0],
            (Json{{"role", "worker"}, {"active", 4}, {"ready", 3}, {"succeeded", 2}, {"failed", 1}}));
  EXPECT_EQ(json["conditions"][0]["observedGeneration"], 2);
  EXPECT_EQ(json["view"], (Json{{"generation", 7}, {"size", 4}}));
  EXPECT_EQ(json["progress"]["samplesPerSecond"], 5120.5);
  EXPECT_EQ(json["progress"]["droppedSamples"], 64);
  EXPECT_EQ(json["members"][1]["role"], "ps");
  EXPECT_EQ(json["members"][1]["server"]["bytesPerSecond"], 1e6);
  EXPECT_EQ(json["progress"]["testAuc"], 0.75);
  EXPECT_EQ(json["members"][1]["server"]["rowBytes"], 10);
  EXPECT_EQ(json["members"][1]["server"]["rowsEvicted"], 11);
  EXPECT_EQ(json["members"][1]["server"]["hottest"][0], (Json{{"table", "users"}, {"id", 5}, {"pulls", 6}}));
  EXPECT_EQ(json["members"][0]["staleness"]["dropped"], 8);
  EXPECT_EQ(json["members"][0]["staleness"]["histogram"], (Json{6, 0, 3}));
  EXPECT_EQ(json["members"][0]["gpu"]["uncorrectedEccErrors"], 0) << "none is told apart from not known";
  EXPECT_FALSE(json["members"][1].contains("gpu"));
  EXPECT_EQ(json["startTime"], "2026-01-31T10:00:00.001Z");
}

TEST(StatusJsonTest, UntoldGpuFieldIsEmpty) {
  api::Status status;
  status.members.resize(1);
  status.members[0].telemetry.gpu = GpuTelemetry{.name = "NVIDIA H200"};
  EXPECT_EQ(status_to_json(status)["members"][0]["gpu"], (Json{{"name", "NVIDIA H200"}}));
  EXPECT_EQ(status_from_json(status_to_json(status)), status);
  EXPECT_EQ(status_from_json({{"members", {{{"gpu", Json::object()}}}}}).members.at(0).telemetry.gpu,
            GpuTelemetry());
}

// A status in which all members of the largest training tell all that they can; of names and counts as long
// as these.
std::size_t bytes_of_all_members(std::size_t name_bytes, std::int64_t count) {
  const std::string job(name_bytes - std::string("-worker-1023-12").size(), 'j');
  api::Status status = full();
  status.members.clear();
  for (int i = 0; i < kMaxGroupMembers; ++i) {
    api::MemberStatus member{.role = Role::kWorker, .index = i, .rank = i};
    member.pod = str_cat(job, "-worker-", i, "-12");
    member.host = std::string(name_bytes, 'n');
    member.phase = "checkpointing";
    member.step = count;
    member.telemetry = filled<MemberTelemetry>();
    member.telemetry.server.reset();
    member.telemetry.staleness = StalenessTelemetry{.applied = count,
                                                    .dropped = count,
                                                    .max = count,
                                                    .mean = 15.625,
                                                    .wait_seconds = 86400.125,
                                                    .histogram = std::vector<std::int64_t>(32, count)};
    status.members.push_back(member);
  }
  return dump(status_to_json(status)).size();
}

// The API server takes objects of up to 1.5 MB, the job's spec included.
TEST(StatusJsonTest, TheLargestJobsStatusFitsIntoTheApiServer) {
  const std::size_t usual = bytes_of_all_members(40, 1'000'000), most = bytes_of_all_members(63, 999'999'999);
  EXPECT_LT(usual, 400'000u);
  EXPECT_LT(most, 450'000u) << "as long as labels may be, and more updates than a job has in days";
  RecordProperty("usual", static_cast<int>(usual));
  RecordProperty("most", static_cast<int>(most));
}

TEST(StatusJsonTest, EmptyFieldIsLeftOut) {
  EXPECT_EQ(status_to_json(api::Status()), (Json{{"phase", "Pending"}}));
  api::Status status;
  status.progress.loss = std::nan("");
  status.progress.epoch = INFINITY;
  EXPECT_EQ(dump(status_to_json(status)).find("null"), std::string::npos);
}

TEST(StatusJsonTest, WrongTypesAreAsIfMissing) {
  EXPECT_EQ(status_from_json(Json()), api::Status());
  EXPECT_EQ(status_from_json(Json::array()), api::Status());
  EXPECT_EQ(
      status_from_json(Json{{"phase", 7}, {"view", "x"}, {"conditions", {{"a", 1}}}, {"progress", {1}}}),
      api::Status());
  const Json kWrong[] = {nullptr, 7, -1.5, "text", true, Json::array(), Json::object()};
  const Json whole = status_to_json(full()), flat = whole.flatten();
  for (const auto& [path, value] : flat.items()) {
    for (Json::json_pointer place(path); !place.empty(); place.pop_back()) {
      for (const Json& wrong : kWrong) {
        Json changed = whole;
        changed[place] = wrong;
        status_from_json(changed);
      }
    }
  }
}

}  // namespace
}  // namespace paceline::kube
