#include "controller/coordinator/core.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/text.h"
#include "controller/coordinator/core_hello.h"
#include "tests/support/paths.h"
#include "tests/support/transcript.h"
#include "tests/unit/controller/coordinator/script.h"

namespace paceline::coordinator {
namespace {

const std::filesystem::path kFolder =
    std::filesystem::path(source_path("tests/unit/controller/coordinator/testdata"));

class TranscriptTest : public ::testing::TestWithParam<std::string> {};

TEST_P(TranscriptTest, HappensAsWritten) {
  happens_as_written(kFolder, GetParam(), run_transcript);
}

INSTANTIATE_TEST_SUITE_P(Core, TranscriptTest, ::testing::ValuesIn(transcripts(kFolder)),
                         [](const auto& info) { return info.param; });

// Two servers of one node are cut off in a synchronous job of so many who train that what one server has to
// report is much; who trains stops at the first server that it misses. (More than a transcript is read for.)
TEST(ManyMembersTest, ServersOfANodeThatIsCutOffAreNamedThoughTheyMissVeryMany) {
  constexpr int kWorkers = 100;
  std::string script = str_cat("> job worker=", kWorkers, " ps=2\n");
  std::string alive = "> alive s200 s201", missed;
  for (int w = 0; w < kWorkers; ++w) {
    script += str_cat("> hello s", w + 1, " worker ", w, "\n");
    alive += str_cat(" s", w + 1);
    missed += str_cat("> fault s200 worker", w, "\n> fault s201 worker", w, "\n");
    missed += str_cat("> fault s", w + 1, " ps", w % 2, "\n");
  }
  script += "> hello s200 ps 0\n> hello s201 ps 1\n" + alive;
  script += "\n> wait 1000\n" + missed + "> wait 7000\n";
  const std::string played = run_transcript(script);
  EXPECT_EQ(played.find("is ignored"), std::string::npos) << "every report counts";
  const std::size_t verdict = played.find("VERDICT Unreachable: ");
  ASSERT_NE(verdict, std::string::npos) << played;
  EXPECT_EQ(played.substr(verdict, 25), "VERDICT Unreachable: ps-1") << played.substr(verdict, 300);
}

CoreConfig good() {
  CoreConfig config;
  config.job = "default/digits";
  config.link_key = std::string(32, 'k');
  config.roles = {{Role::kChief, 1}, {Role::kWorker, 3}};
  return config;
}

TEST(ResumeTest, MembersGoOnFromCheckpointsWhereOthersHaveFinishedBeforeAnybodyKnew) {
  CoreConfig config = good();
  config.built_in = true;
  CoordinatorCore core(config, TimePoint());
  core.step(PodFact{.role = Role::kWorker, .index = 0, .pod = "pod-worker0", .exit_code = 0}, TimePoint());
  v1::Hello hello;
  hello.set_protocol_version(kProtocolVersion);
  hello.set_member_id("chief");
  hello.set_job(config.job);
  const Effects effects = core.step(Attached{{1}, hello}, TimePoint());
  ASSERT_FALSE(effects.send.empty());
  EXPECT_TRUE(effects.send[0].message.welcome().training().checkpoint().resume());
}

// Found by fuzzing: a view had such a member twice, and neither knew its rank.
TEST(CoreTest, AMemberIdIsOneMembersOnly) {
  CoordinatorCore core(good(), TimePoint());
  const auto attach = [&](std::uint64_t stream, v1::RoleKind role, std::uint32_t index) {
    v1::Hello hello;
    hello.set_protocol_version(kProtocolVersion);
    hello.set_member_id("the-same");
    hello.set_job(good().job);
    hello.set_role(role);
    hello.set_index(index);
    return core.step(Attached{{stream}, hello}, TimePoint());
  };
  EXPECT_TRUE(attach(1, v1::ROLE_WORKER, 0).close.empty());
  const Effects second = attach(2, v1::ROLE_WORKER, 1);
  ASSERT_EQ(second.close.size(), 1u);
  EXPECT_EQ(second.close[0].value, 2u);
  ASSERT_EQ(core.report(TimePoint()).members.size(), 4u);
  EXPECT_EQ(core.report(TimePoint()).members[2].member_id, "");
  EXPECT_EQ(attach(3, v1::ROLE_WORKER, 0).close.size(), 1u) << "the member itself comes by another stream";
}

TEST(ValidateTest, NamesWhatIsWrong) {
  EXPECT_TRUE(validate(good()).ok());
  struct Case {
    const char* what;
    void (*spoil)(CoreConfig&);
  };
  const Case cases[] = {
      {"name", [](CoreConfig& c) { c.job = ""; }},
      {"link key", [](CoreConfig& c) { c.link_key = "short"; }},
      {"chiefs", [](CoreConfig& c) { c.roles[0].count = 2; }},
      {"of which 0 train",
       [](CoreConfig& c) {
         c.roles = {{Role::kServer, 2}};
       }},
      {"twice",
       [](CoreConfig& c) {
         c.roles.push_back({Role::kWorker, 1});
       }},
      {"workers", [](CoreConfig& c) { c.roles[1].count = -1; }},
      {"members", [](CoreConfig& c) { c.roles = {}; }},
      {"members", [](CoreConfig& c) { c.roles[1].count = kMaxMembers; }},
      {"grace", [](CoreConfig& c) { c.grace = Duration(-1); }},
      {"report window", [](CoreConfig& c) { c.report_window = c.grace / 2; }},
      {"heartbeat timeout", [](CoreConfig& c) { c.heartbeat_timeout = c.heartbeat_interval; }},
      {"most silence", [](CoreConfig& c) { c.most_silence = c.heartbeat_timeout / 2; }},
      {"duration", [](CoreConfig& c) { c.form_timeout = Duration::zero(); }},
      {"policy", [](CoreConfig& c) { c.on_member_lost = nullptr; }},
  };
  for (const Case& c : cases) {
    CoreConfig config = good();
    c.spoil(config);
    const absl::Status status = validate(config);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.what;
    EXPECT_NE(std::string(status.message()).find(c.what), std::string::npos) << std::string(status.message());
  }
}

TEST(CoreTest, LongNamesAndAddressesAreRefused) {
  struct Case {
    const char* field;
    void (*spoil)(v1::Hello&);
  };
  const Case cases[] = {
      {"member_id", [](v1::Hello& h) { h.set_member_id(""); }},
      {"member_id", [](v1::Hello& h) { h.set_member_id(std::string(257, 'x')); }},
      {"pod", [](v1::Hello& h) { h.set_pod(std::string(257, 'x')); }},
      {"host_id", [](v1::Hello& h) { h.set_host_id(std::string(257, 'x')); }},
      {"local_socket", [](v1::Hello& h) { h.mutable_address()->set_local_socket(std::string(257, 'x')); }},
      {"address.tcp", [](v1::Hello& h) { h.mutable_address()->add_tcp(""); }},
      {"address.tcp",
       [](v1::Hello& h) {
         for (int i = 0; i < 17; ++i) h.mutable_address()->add_tcp("a:1");
       }},
      {"no such role", [](v1::Hello& h) { h.set_role(static_cast<v1::RoleKind>(77)); }},
  };
  for (const Case& c : cases) {
    v1::Hello hello;
    hello.set_protocol_version(kProtocolVersion);
    hello.set_job("default/digits");
    hello.set_member_id("a");
    c.spoil(hello);
    EXPECT_NE(hello_error(hello, good()).find(c.field), std::string::npos) << hello_error(hello, good());
  }
}

TEST(CoreTest, AbsurdFiguresAreBroughtIntoRange) {
  CoreConfig config = good();
  config.roles = {{Role::kWorker, 1}};
  CoordinatorCore core(config, TimePoint{});
  v1::Hello hello;
  hello.set_protocol_version(kProtocolVersion);
  hello.set_job("default/digits");
  hello.set_role(v1::ROLE_WORKER);
  hello.set_member_id("a");
  hello.set_held_generation(UINT64_MAX);
  (void)core.step(Attached{{1}, hello}, TimePoint{});
  TimePoint now{};
  for (const std::int64_t value : {INT64_MAX, INT64_MIN, std::int64_t{-1}, INT64_MAX}) {
    v1::MemberMessage message;
    v1::Heartbeat& beat = *message.mutable_heartbeat();
    beat.set_generation(core.report(now).generation.value);
    beat.set_step(value);
    beat.set_steps(value);
    beat.set_samples(value);
    beat.set_total_steps(value);
    beat.set_weights_hash_step(value);
    beat.set_phase(static_cast<v1::MemberPhase>(99));
    beat.set_part(static_cast<v1::StepPart>(value < 0 ? 99 : v1::PART_COMPUTE));
    beat.set_part_ns(value);
    beat.mutable_times()->set_step_ns(value);
    beat.mutable_times()->set_checkpoint_ns(value);
    beat.add_records()->set_step(value);
    beat.add_evaluations()->set_since_start_ns(value);
    beat.add_step_times()->set_compute_ns(value);
    beat.add_step_time_steps(value);
    now += std::chrono::milliseconds(100);
    (void)core.step(Received{{1}, message}, now);
    const Report report = core.report(now);
    EXPECT_EQ(report.state, JobState::kRunning);
    EXPECT_GE(report.step, 0);
    EXPECT_GE(report.goodput, 0);
    EXPECT_LE(report.goodput, 1);
    EXPECT_GE(report.samples_per_second, 0);
  }
}

}  // namespace
}  // namespace paceline::coordinator
