// docs/metrics.md holds the tables of metrics as the code has them. After a change of a metric:
//   PACELINE_UPDATE_DOCS=1 build/release/tests/controller_bin_test --gtest_filter='MetricsReference.*'

#include "controller/bin/job_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/check.h"
#include "base/text.h"
#include "controller/plan/kubernetes_limits.h"
#include "controller/web/controller_metrics.h"
#include "tests/support/paths.h"

namespace paceline::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const WallTime kNow{std::chrono::seconds(1'700'000'000)};

// All that can be known of a job is.
reconcile::JobSnapshot full_snapshot(const std::string& name = "fashion", std::int64_t members = 2) {
  reconcile::JobSnapshot snapshot{.learning_rate = 0.125,
                                  .progressed = kNow - std::chrono::seconds(5),
                                  .checkpoint = kNow - std::chrono::seconds(60)};
  api::TrainingJob& job = snapshot.job;
  job.metadata.name = name;
  job.metadata.ns = "team-a";
  job.spec.training.emplace();
  job.spec.replica_specs.chief.emplace();
  job.spec.replica_specs.worker = api::ReplicaSpec{.replicas = members - 1};
  job.spec.checkpoint.every_steps = 100;
  job.spec.checkpoint.every_seconds = 30;
  api::Status& s = job.status;
  s.phase = api::Phase::kRunning;
  s.conditions = {{.type = api::kStraggling, .status = true}};
  s.start_time = kNow - std::chrono::seconds(3600);
  s.last_checkpoint = "/data/step-000000200";
  s.progress = {.step = 250,
                .total_steps = 1000,
                .epoch = 2.5,
                .loss = 0.5,
                .test_loss = 0.75,
                .test_accuracy = 0.875,
                .test_auc = 0.9375,
                .samples_per_second = 512,
                .dropped_samples = 3,
                .goodput = 0.96875,
                .eta_seconds = 90};
  s.replica_statuses = {{.role = Role::kChief, .ready = 1}, {.role = Role::kWorker, .ready = members - 1}};
  s.restarts.total = 4;
  s.restarts.by_cause = {{Role::kWorker, api::RestartCause::kExited, 4}};
  s.view = {.generation = Generation{7}, .size = members};
  s.stragglers = {{.kind = api::StragglerKind::kSlow, .lost_ms = 12, .action = api::StragglerAction::kWait}};
  for (std::int64_t i = 0; i < members; ++i) {
    api::MemberStatus& m = s.members.emplace_back();
    m.role = i == 0 ? Role::kChief : Role::kWorker;
    m.index = i == 0 ? 0 : i - 1;
    m.rank = i;
    m.pod = str_cat(name, "-", i);
    m.host = "node-1";
    m.step = 250;
    MemberTelemetry& t = m.telemetry;
    t.input_ms = 1, t.compute_ms = 6, t.wait_ms = 2, t.transfer_ms = 3, t.update_ms = 4, t.step_ms = 16;
    t.samples = 32, t.bytes_sent = 1 << 20, t.dropped_samples = 3;
    t.server = ServerTelemetry{.load = 0.5, .bytes_per_second = 1e6, .queue = 2, .updates = 9};
    t.staleness = StalenessTelemetry{.applied = 8, .dropped = 1, .max = 3, .mean = 1.5, .wait_seconds = 2};
    t.gpu = GpuTelemetry{.name = "H200",
                         .utilization = 0.5,
                         .memory_used_mib = 2,
                         .memory_total_mib = 4,
                         .sm_clock_mhz = 1500,
                         .temperature_celsius = 40,
                         .power_watts = 300,
                         .slowdowns = {"SwPowerCap"},
                         .corrected_ecc_errors = 1,
                         .uncorrected_ecc_errors = 0,
                         .pcie_replays = 0,
                         .xids = 1};
    t.kernel = KernelTelemetry{1, 0.25, 0.125, 0.5, 0, 0, 7, 4096, 0.5, 2};
  }
  return snapshot;
}

Snapshots all(std::vector<reconcile::JobSnapshot> snapshots) {
  Snapshots jobs;
  for (auto& each : snapshots)
    jobs.push_back(std::make_shared<const reconcile::JobSnapshot>(std::move(each)));
  return jobs;
}

TEST(JobMetricsTest, SeriesSayWhatTheStatusSays) {
  const std::string page = job_metrics(all({full_snapshot()}), {}, kNow);
  const std::string job = "{job_namespace=\"team-a\",job_name=\"fashion\"";
  for (const std::string& line : std::vector<std::string>{
           "paceline_jobs{phase=\"Running\"} 1\n",
           "paceline_jobs{phase=\"Failed\"} 0\n",
           "paceline_stragglers{kind=\"Slow\"} 1\n",
           "paceline_dropped_samples 3\n",
           str_cat("paceline_job_info", job, ",model=\"mlp\",strategy=\"AllReduce\"} 1\n"),
           str_cat("paceline_job_phase", job, ",phase=\"Running\"} 1\n"),
           str_cat("paceline_job_condition", job, ",condition=\"Straggling\"} 1\n"),
           str_cat("paceline_job_condition", job, ",condition=\"CheckpointFailed\"} 0\n"),
           str_cat("paceline_job_step", job, "} 250\n"),
           str_cat("paceline_job_learning_rate", job, "} 0.125\n"),
           str_cat("paceline_job_last_progress_timestamp_seconds", job, "} 1699999995\n"),
           str_cat("paceline_job_checkpoint_step", job, "} 200\n"),
           str_cat("paceline_job_wanted_members", job, "} 2\n"),
           str_cat("paceline_job_ready_members", job, "} 2\n"),
           str_cat("paceline_job_restarts_used", job, "} 4\n"),
           str_cat("paceline_job_restarts_allowed", job, "} 6\n"),
           str_cat("paceline_job_straggler_lost_seconds", job, "} 0.012\n"),
           str_cat("paceline_job_stragglers", job, ",action=\"Wait\",kind=\"Slow\"} 1\n"),
           str_cat("paceline_member_rank", job, ",member=\"worker-0\"} 1\n"),
           str_cat("paceline_member_step_part_seconds", job, ",member=\"chief-0\",part=\"compute\"} 0.006\n"),
           str_cat("paceline_member_gpu_memory_used_bytes", job, ",member=\"chief-0\"} 2097152\n"),
           str_cat("paceline_member_pressure_ratio", job, ",member=\"chief-0\",resource=\"cpu\"} 0.5\n"),
       }) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

TEST(JobMetricsTest, UnknownNumbersHaveNoSeries) {
  reconcile::JobSnapshot fresh;
  fresh.job.metadata.name = "fresh";
  fresh.job.status.members.emplace_back();
  const std::string page = job_metrics(all({fresh}), {}, kNow);
  for (const char* absent :
       {"paceline_job_loss{", "paceline_job_target_steps{", "paceline_job_remaining_seconds{",
        "paceline_job_start_timestamp_seconds{", "paceline_job_checkpoint_step{",
        "paceline_job_last_progress_timestamp_seconds{", "paceline_member_gpu_power_watts{",
        "paceline_member_step_part_seconds{", "paceline_member_cpus{"}) {
    EXPECT_THAT(page, Not(HasSubstr(absent)));
  }
  fresh.job.spec.training.emplace();
  fresh.job.spec.checkpoint.every_steps = 10;
  const std::string trains = job_metrics(all({fresh}), {}, kNow);
  EXPECT_THAT(trains,
              HasSubstr("paceline_job_checkpoint_step{job_namespace=\"default\",job_name=\"fresh\"} 0\n"));
  EXPECT_THAT(trains, HasSubstr("paceline_job_last_progress_timestamp_seconds{"));
}

TEST(JobMetricsTest, EndedJobsCountButHaveNoSeries) {
  reconcile::JobSnapshot ended = full_snapshot("ended");
  ended.job.status.phase = api::Phase::kSucceeded;
  const std::string page = job_metrics(all({ended, full_snapshot("lives")}), {}, kNow);
  EXPECT_THAT(page, Not(HasSubstr("\"ended\"")));
  EXPECT_THAT(page, HasSubstr("\"lives\""));
  EXPECT_THAT(page, HasSubstr("paceline_jobs{phase=\"Succeeded\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("paceline_jobs_left_out 0\n"));
}

reconcile::JobSnapshot failed_snapshot(const std::string& name, Duration ago) {
  reconcile::JobSnapshot failed = full_snapshot(name);
  failed.job.status.phase = api::Phase::kFailed;
  failed.job.status.reason = "BackoffLimitExceeded";
  failed.job.status.completion_time = kNow - ago;
  return failed;
}

TEST(JobMetricsTest, FailureIsToldForAnHour) {
  const auto of = [](const char* name) {
    return str_cat("{job_namespace=\"team-a\",job_name=\"", name, "\",reason=\"BackoffLimitExceeded\"}");
  };
  const Snapshots jobs = all({failed_snapshot("late", std::chrono::minutes(61)),
                              failed_snapshot("mine", std::chrono::minutes(59)),
                              failed_snapshot("next", std::chrono::minutes(1))});
  const std::string page = job_metrics(jobs, {}, kNow);
  EXPECT_THAT(page, HasSubstr(str_cat("paceline_job_failed_timestamp_seconds", of("mine"), " 1699996460\n")));
  EXPECT_THAT(page, HasSubstr(of("next")));
  EXPECT_THAT(page, Not(HasSubstr("\"late\"")));
  const std::string bounded = job_metrics(jobs, {.jobs = 1}, kNow);
  EXPECT_THAT(bounded, HasSubstr(of("mine")));
  EXPECT_THAT(bounded, Not(HasSubstr("\"next\"")));
}

TEST(JobMetricsTest, SeriesAreBoundedAndTheRestIsCounted) {
  const Snapshots jobs = all({full_snapshot("a", 2), full_snapshot("b", 3), full_snapshot("c", 1)});
  const std::string page = job_metrics(jobs, {.jobs = 2, .members = 3}, kNow);
  EXPECT_THAT(page, HasSubstr("paceline_jobs{phase=\"Running\"} 3\n"));
  EXPECT_THAT(page, HasSubstr("paceline_jobs_left_out 1\n"));
  EXPECT_THAT(page, HasSubstr("paceline_members_left_out 4\n"));
  EXPECT_THAT(page, HasSubstr("paceline_job_step{job_namespace=\"team-a\",job_name=\"b\"}"));
  EXPECT_THAT(page, Not(HasSubstr("paceline_member_rank{job_namespace=\"team-a\",job_name=\"b\"")));
  EXPECT_THAT(page, Not(HasSubstr("job_name=\"c\"")));
  EXPECT_THAT(job_metrics(jobs, {.jobs = 0, .members = 0}, kNow), Not(HasSubstr("job_name")));
}

// ---- docs/metrics.md

struct Family {
  std::string kind, help;
  std::set<std::string> labels;
  int samples = 0;
};

std::map<std::string, Family> families_of(const std::string& page) {
  std::map<std::string, Family> families;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string mark, what, name;
    if (line.starts_with("# ")) {
      words >> mark >> what >> name;
      std::string rest;
      std::getline(words >> std::ws, rest);
      (what == "HELP" ? families[name].help : families[name].kind) = rest;
      continue;
    }
    name = line.substr(0, line.find_first_of("{ "));
    for (const char* part : {"_bucket", "_sum", "_count"}) {
      const std::string whole = name.substr(0, name.size() - std::min(name.size(), std::string(part).size()));
      if (name.ends_with(part) && families.contains(whole)) name = whole;
    }
    Family& family = families[name];
    ++family.samples;
    for (std::size_t at = line.find_first_of("{,"); at != line.npos; at = line.find_first_of("{,", at + 1)) {
      const std::string label = line.substr(at + 1, line.find('=', at) - at - 1);
      if (label != "le") family.labels.insert(label);
    }
  }
  return families;
}

std::string unit_of(std::string name) {
  constexpr const char* kUnits[][2] = {{"_timestamp_seconds", "Unix time"},
                                       {"_bytes_per_second", "bytes/s"},
                                       {"_per_second", "1/s"},
                                       {"_seconds", "seconds"},
                                       {"_bytes", "bytes"},
                                       {"_ratio", "0 to 1"},
                                       {"_hertz", "hertz"},
                                       {"_celsius", "celsius"},
                                       {"_watts", "watts"}};
  if (name.ends_with("_total")) name.resize(name.size() - std::string("_total").size());
  for (const auto& [suffix, unit] : kUnits) {
    if (name.ends_with(suffix)) return unit;
  }
  return "";
}

std::string reference() {
  web::ControllerMetrics own;
  own.reconciled("error", {});
  own.requested("GET", 200);
  own.event("ViewChanged");
  own.history_error("full");
  own.on_taken({});
  own.on_done({});
  const Snapshots jobs = all({full_snapshot(), failed_snapshot("failed", std::chrono::minutes(1))});
  std::string out = "| metric | kind | labels | unit | what it is |\n| --- | --- | --- | --- | --- |\n";
  for (const auto& [name, family] : families_of(own.text() + job_metrics(jobs, {}, kNow))) {
    EXPECT_GT(family.samples, 0) << name << ": without a series its labels are not known";
    std::string labels;
    for (const std::string& label : family.labels)
      labels += str_cat(labels.empty() ? "" : ", ", "`", label, "`");
    out += str_cat("| `", name, "` | ", family.kind, " | ", labels, " | ", unit_of(name), " | ", family.help,
                   " |\n");
  }
  return out;
}

TEST(MetricsReference, PageHoldsTheMetricsAsTheyAre) {
  const std::string path = source_path("docs/metrics.md"), begin_mark = "<!-- metrics: begin -->\n";
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  std::string page = text.str();
  const std::size_t begin = page.find(begin_mark), end = page.find("<!-- metrics: end -->\n");
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const std::size_t start = begin + begin_mark.size();
  if (std::getenv("PACELINE_UPDATE_DOCS") != nullptr) {
    page.replace(start, end - start, reference());
    std::ofstream(path, std::ios::binary) << page;
    return;
  }
  EXPECT_EQ(page.substr(start, end - start), reference()) << "PACELINE_UPDATE_DOCS=1 writes it";
}

}  // namespace
}  // namespace paceline::controller
