// paceline get, describe, delete: local runs, read from the state folder, or jobs of a cluster.

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/regular_file.h"
#include "base/status.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "base/visible.h"
#include "cli/commands/cluster_flags.h"
#include "cli/session.h"
#include "cli/view/age.h"
#include "cli/view/dashboard.h"
#include "cli/view/narrow.h"
#include "cli/view/run_cells.h"
#include "cli/view/yaml.h"

namespace paceline::cli {

namespace {

constexpr std::size_t kMaxEventsBytes = 16 << 20;
constexpr std::size_t kEventsShown = 20;
constexpr int kStopLimitMs = 15'000;  // a run that is to end in order
constexpr int kKillLimitMs = 5'000;   // the same, at once

// "2026-01-31T12:00:00.123Z" without its milliseconds.
std::string to_the_second(const std::string& time) {
  const std::size_t dot = time.find('.');
  return dot == std::string::npos ? time : time.substr(0, dot) + "Z";
}

void print_table(const std::vector<RunState>& runs, const Terminal& terminal, bool wide) {
  constexpr Column kColumns[] = {{"NAME"},
                                 {"PHASE"},
                                 {"MEMBERS", true, 2},
                                 {"STEP", true, 7},
                                 {"LOSS", true, 4},
                                 {"ACCURACY", true, 6},
                                 {"SAMPLES/S", true, 3},
                                 {"TIME", true, 5},
                                 {"CREATED", false, 1},
                                 {"REASON"},
                                 {"FOLDER"}};
  std::vector<Row> rows;
  rows.reserve(runs.size());
  for (const RunState& r : runs) {
    std::vector<std::string> row = {r.name, r.phase, str_cat(r.members.size())};
    for (std::string& cell : progress_cells(r)) row.push_back(std::move(cell));
    row.insert(row.end(), {human_seconds(r.elapsed_seconds), to_the_second(r.created)});
    if (wide) row.insert(row.end(), {r.reason.empty() ? "-" : r.reason, r.folder});
    rows.push_back(std::move(row));
  }
  // Wide is what was asked for: the terminal breaks the lines.
  const int width = terminal.interactive && !wide ? terminal.columns : kAnyWidth;
  const std::span<const Column> all(kColumns), columns = wide ? all : all.first(all.size() - 2);
  for (const std::string& line : narrow_table(columns, std::move(rows), width)) std::cout << line << "\n";
}

std::string json_of(const std::vector<RunState>& runs, bool single) {
  if (single) return to_json(runs[0]) + "\n";
  std::string text = "[";
  for (std::size_t i = 0; i < runs.size(); ++i) text += str_cat(i == 0 ? "\n" : ",\n", to_json(runs[i]));
  return text + (runs.empty() ? "]\n" : "\n]\n");
}

absl::Status with_hint(const Session& session, const absl::Status& status) {
  if (!absl::IsNotFound(status)) return status;
  return absl::NotFoundError(str_cat(status.message(), session.cluster_hint()));
}

void get_runs(Session& session, const std::string& name, const std::string& output) {
  const auto store = session.store();
  if (!store.ok()) return session.fail(store.status());
  std::vector<RunState> runs;
  std::vector<absl::Status> left_out;
  if (name.empty()) {
    auto all = store->list(&left_out);
    if (!all.ok()) return session.fail(all.status());
    runs = *std::move(all);
  } else {
    auto one = store->get(name);
    if (!one.ok()) return session.fail(with_hint(session, one.status()));
    runs.push_back(*std::move(one));
  }
  const std::string json = output == "json" || output == "yaml" ? json_of(runs, !name.empty()) : "";
  if (!json.empty()) {
    std::cout << (output == "json" ? json : yaml_of(json));
  } else if (output == "name") {
    for (const RunState& run : runs) std::cout << run.name << "\n";
  } else if (runs.empty() && left_out.empty()) {
    std::cout << "No runs in " << store->state_folder() << ". Start one with `paceline run job.yaml`."
              << session.cluster_hint() << "\n";
  } else if (!runs.empty()) {
    print_table(runs, session.out_terminal, output == "wide");
  }
  for (const absl::Status& why : left_out) session.fail(why);
}

void print_events(const RunState& run) {
  const auto text = read_regular_file(run.folder + "/events.jsonl", kMaxEventsBytes);
  if (absl::IsNotFound(text.status())) return;
  if (!text.ok()) {
    std::cout << "\nEvents: " << text.status().message() << "\n";
    return;
  }
  std::vector<std::vector<std::string>> rows;
  std::size_t begin = 0;
  while (begin < text->size()) {
    const std::size_t end = std::min(text->find('\n', begin), text->size());
    const auto event = nlohmann::json::parse(text->substr(begin, end - begin), nullptr, false);
    begin = end + 1;
    if (!event.is_object()) continue;  // a line torn by a crash
    rows.push_back({event.value("time", ""), event.value("type", ""), event.value("reason", ""),
                    event.value("message", "")});
  }
  if (rows.empty()) return;
  std::cout << "\nEvents:\n";
  if (rows.size() > kEventsShown) {
    std::cout << "  ... " << rows.size() - kEventsShown << " earlier in " << run.folder << "/events.jsonl\n";
    rows.erase(rows.begin(), rows.end() - kEventsShown);
  }
  for (const std::string& line : align_table(rows, {})) std::cout << "  " << line << "\n";
}

void describe(Session& session, const std::string& name) {
  const auto store = session.store();
  if (!store.ok()) return session.fail(store.status());
  const auto run = store->choose(name);
  if (!run.ok()) return session.fail(with_hint(session, run.status()));
  for (const std::string& line : render_summary(*run, session.out_terminal)) std::cout << line << "\n";
  std::vector<std::vector<std::string>> rows = {{"job", str_cat(run->ns, "/", run->job)},
                                                {"job file", run->job_file},
                                                {"folder", run->folder},
                                                {"created", run->created}};
  if (!run->finished.empty()) rows.push_back({"finished", run->finished});
  if (run->parameters > 0)
    rows.push_back({"parameters", with_commas(static_cast<std::int64_t>(run->parameters))});
  if (run->weights_checked_step > 0) {
    rows.push_back({"weights equal", str_cat("on all ranks, last seen at step ", run->weights_checked_step)});
  }
  for (const std::string& line : align_table(rows, {})) std::cout << "  " << line << "\n";
  if (!run->message.empty()) std::cout << "\nMessage:\n  " << visible(run->message) << "\n";
  if (!run->members.empty()) std::cout << "\n";
  for (const std::string& line : render_members(*run, session.out_terminal)) std::cout << line << "\n";
  print_events(*run);
}

// Ends a run that goes on, as ctrl-C in its terminal does; at once where that takes too long.
absl::Status stop_run(const RunStore& store, const RunState& run) {
  const UniqueFd owner(static_cast<int>(::syscall(SYS_pidfd_open, run.owner_pid, 0)));
  const auto now = store.get(run.name);  // still owned: then it is the owner that the descriptor is about
  if (!now.ok() || is_finished(*now)) return now.status();
  if (!owner.valid()) return errno_status(errno, str_cat("process ", run.owner_pid, ", which owns it"));
  siginfo_t notice{};
  notice.si_signo = SIGTERM;
  notice.si_code = SI_QUEUE;
  notice.si_pid = ::getpid();
  notice.si_uid = ::getuid();
  notice.si_value.sival_int = kDeletionNotice;
  for (const int limit_ms : {kStopLimitMs, kKillLimitMs}) {
    if (::syscall(SYS_pidfd_send_signal, owner.get(), SIGTERM, &notice, 0) != 0 && errno != ESRCH)
      return errno_status(errno, str_cat("stopping process ", run.owner_pid, ", which owns it"));
    pollfd ended{owner.get(), POLLIN, 0};
    if (::poll(&ended, 1, limit_ms) > 0) return absl::OkStatus();
  }
  return absl::DeadlineExceededError(
      str_cat("process ", run.owner_pid, ", which owns it, does not end; kill it by kill -9"));
}

absl::Status delete_run(const RunStore& store, const std::string& name) {
  const auto run = store.get(name);
  if (!run.ok()) return run.status();
  if (!is_finished(*run)) {
    std::cout << "stopping run \"" << name << "\"" << std::endl;
    PL_RETURN_IF_ERROR(with_context(stop_run(store, *run), str_cat("run \"", name, "\"")));
  }
  return store.remove(name);
}

void delete_runs(Session& session, const std::vector<std::string>& names, bool all_finished) {
  const auto store = session.store();
  if (!store.ok()) return session.fail(store.status());
  std::vector<std::string> wanted = names, stopped;
  std::vector<absl::Status> left_out;
  if (all_finished) {
    auto runs = store->list(&left_out);
    if (!runs.ok()) return session.fail(runs.status());
    for (const RunState& run : *runs) {
      if (is_finished(run)) (run.phase == "Stopped" ? stopped : wanted).push_back(run.name);
    }
  } else if (wanted.empty()) {
    return session.fail(kExitUsage, "name the runs to delete, or say --finished");
  }
  for (const std::string& name : wanted) {
    if (const auto status = delete_run(*store, name); !status.ok()) {
      session.fail(with_hint(session, status));
    } else {
      std::cout << "run \"" << name << "\" deleted\n";
    }
  }
  for (const absl::Status& why : left_out) session.fail(why);
  // Their users were told that they may go on.
  if (!stopped.empty()) {
    std::cout << "kept, since they were stopped and may be resumed: " << absl::StrJoin(stopped, ", ")
              << "; `paceline delete NAME` deletes them\n";
  }
}

}  // namespace

void add_get(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand(
      "get", session.kubectl ? "List jobs, or one of them" : "List runs, newest first, or jobs of a cluster");
  struct Options {
    std::string name, output = "table";
    bool watch = false;
  };
  auto options = std::make_shared<Options>();
  command->add_option("NAME", options->name, "Name of a run, or of a job on a cluster (default: all)")
      ->type_name("");
  command->add_option("-o,--output", options->output, "How to print (default: table)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"table", "wide", "json", "yaml", "name"}));
  auto flags = add_cluster_flags(*command, session, Where::kBoth, true);
  command->add_flag("-w,--watch", options->watch, "Then print those that change, until ctrl-C")
      ->group(kClusterGroup);
  command->footer(session.examples({{false, "get"},
                                    {false, "get digits-allreduce -o json"},
                                    {true, "get -n team-a"},
                                    {true, "get -A -o wide"}}));
  command->callback([&session, options, flags] {
    if (!is_on_cluster(session, *flags)) {
      if (options->watch)
        return session.fail(kExitUsage, "--watch is for jobs on a cluster; `paceline top` watches a run");
      return get_runs(session, options->name, options->output);
    }
    GetOptions get{.name = "", .output = options->output, .watch = options->watch};
    if (!take_job_name(session, options->name, get.name)) return;
    if (!get.name.empty() && flags->all_namespaces)
      return session.fail(kExitUsage, "a job is of one namespace: say which by -n, not -A");
    on_cluster(session, *flags, get.watch ? Mode::kFollow : Mode::kOnce,
               [&](Call& call) { return get_jobs(call, get); });
  });
}

void add_describe(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand(
      "describe", session.kubectl
                      ? "Everything about one job: spec, conditions, pods, events, what to do"
                      : "Everything about one run or job: result, members, events, where its files are");
  auto name = std::make_shared<std::string>();
  command->add_option("NAME", *name, kNameHelp)->type_name("");
  auto flags = add_cluster_flags(*command, session, Where::kBoth);
  command->footer(session.examples(
      {{false, "describe"}, {false, "describe fashion-allreduce"}, {true, "describe digits -n team-a"}}));
  command->callback([&session, name, flags] {
    if (!is_on_cluster(session, *flags)) return describe(session, *name);
    std::string job;
    if (!take_job_name(session, *name, job)) return;
    on_cluster(session, *flags, Mode::kOnce, [&](Call& call) { return describe_job(call, job); });
  });
}

void add_delete(CLI::App& app, Session& session) {
  struct Options {
    DeleteOptions cluster;
    std::string timeout;
    bool finished = false;
  };
  auto* command = app.add_subcommand(
      "delete", session.kubectl ? "Delete jobs with their pods"
                                : "Stop runs that go on, and remove them with their logs, checkpoints and "
                                  "models; or jobs of a cluster with their pods");
  auto options = std::make_shared<Options>();
  command->add_option("NAME", options->cluster.names, "Names of runs, or of jobs on a cluster")
      ->type_name("");
  command->add_flag("--finished", options->cluster.finished,
                    "All that are finished; runs that their user stopped stay");
  auto flags = add_cluster_flags(*command, session, Where::kBoth, true);
  command->add_flag("--wait", options->cluster.wait, "Until they are gone (the default); --wait=false: not")
      ->group(kClusterGroup);
  command->add_option("--timeout", options->timeout, "Wait at most so long: 30s, 5m (default: 10m)")
      ->type_name("TIME")
      ->group(kClusterGroup);
  command
      ->add_option(
          "--cascade", options->cluster.cascade,
          "What becomes of their pods: deleted behind them (background, the default), before them, or not")
      ->group(kClusterGroup)
      ->check(CLI::IsMember({"background", "foreground", "orphan"}));
  command->footer(session.examples({{false, "delete digits-allreduce-2"},
                                    {false, "delete --finished"},
                                    {true, "delete digits -n team-a"},
                                    {true, "delete --finished -A --wait=false"}}));
  command->callback([&session, options, flags, command] {
    DeleteOptions& wanted = options->cluster;
    if (wanted.names.empty() && !wanted.finished)
      return session.fail(kExitUsage, "name what to delete, or say --finished");
    if (!is_on_cluster(session, *flags)) {
      for (const char* name : {"--wait", "--timeout", "--cascade"}) {
        if (command->get_option(name)->count() > 0)
          return session.fail(
              kExitUsage,
              str_cat(name, " is for jobs on a cluster; say which by --cluster, --context or -n"));
      }
      return delete_runs(session, wanted.names, wanted.finished);
    }
    for (std::string& name : wanted.names) {
      if (!take_job_name(session, name, name)) return;
    }
    if (!wanted.names.empty() && flags->all_namespaces)
      return session.fail(kExitUsage, "a job is of one namespace: say which by -n, not -A");
    if (!options->timeout.empty()) {
      const auto timeout = parse_age(options->timeout);
      if (!timeout.ok()) return session.fail(timeout.status());
      wanted.timeout = *timeout;
    }
    on_cluster(session, *flags, Mode::kOnce, [&](Call& call) { return delete_jobs(call, wanted); });
  });
}

}  // namespace paceline::cli
