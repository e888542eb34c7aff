// paceline get, describe, delete: finished and running local runs, read from the state folder.

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "cli/session.h"
#include "cli/view/dashboard.h"
#include "cli/view/narrow.h"

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

void print_table(const std::vector<RunState>& runs, const Terminal& terminal) {
  constexpr Column kColumns[] = {{"NAME"},
                                 {"PHASE"},
                                 {"MEMBERS", true, 2},
                                 {"STEP", true, 7},
                                 {"LOSS", true, 4},
                                 {"ACCURACY", true, 6},
                                 {"SAMPLES/S", true, 3},
                                 {"TIME", true, 5},
                                 {"CREATED", false, 1}};
  std::vector<Row> rows;
  for (const RunState& r : runs) {
    rows.push_back(
        {r.name, r.phase, str_cat(r.members.size()),
         r.total_steps > 0 ? str_cat(r.step, "/", r.total_steps) : "-", r.loss ? loss_text(*r.loss) : "-",
         r.accuracy ? fixed(*r.accuracy * 100, 2) + " %" : "-",
         r.samples_per_second >= 1 ? with_commas(static_cast<std::int64_t>(r.samples_per_second)) : "-",
         human_seconds(r.elapsed_seconds), to_the_second(r.created)});
  }
  const int width = terminal.interactive ? terminal.columns : kAnyWidth;
  for (const std::string& line : narrow_table(kColumns, std::move(rows), width)) std::cout << line << "\n";
}

void print_json(const std::vector<RunState>& runs, bool single) {
  if (single) {
    std::cout << to_json(runs[0]) << "\n";
    return;
  }
  std::cout << "[";
  for (std::size_t i = 0; i < runs.size(); ++i) std::cout << (i == 0 ? "\n" : ",\n") << to_json(runs[i]);
  std::cout << (runs.empty() ? "]\n" : "\n]\n");
}

void get_runs(Session& session, const std::string& name, const std::string& output) {
  const auto store = session.store();
  if (!store.ok()) return session.fail(store.status());
  std::vector<RunState> runs;
  if (name.empty()) {
    auto all = store->list();
    if (!all.ok()) return session.fail(all.status());
    runs = *std::move(all);
  } else {
    auto one = store->get(name);
    if (!one.ok()) return session.fail(one.status());
    runs.push_back(*std::move(one));
  }
  if (output == "json") return print_json(runs, !name.empty());
  if (runs.empty()) {
    std::cout << "No runs in " << store->state_folder() << ". Start one with `paceline run job.yaml`.\n";
    return;
  }
  print_table(runs, session.out_terminal);
}

void print_events(const RunState& run) {
  const auto text = read_file(run.folder + "/events.jsonl", kMaxEventsBytes);
  if (!text.ok()) return;
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
  if (!run.ok()) return session.fail(run.status());
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
  if (!run->message.empty()) std::cout << "\nMessage:\n  " << run->message << "\n";
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
  std::vector<std::string> wanted = names;
  if (all_finished) {
    auto runs = store->list();
    if (!runs.ok()) return session.fail(runs.status());
    for (const RunState& run : *runs) {
      if (is_finished(run)) wanted.push_back(run.name);
    }
  } else if (wanted.empty()) {
    return session.fail(kExitUsage, "name the runs to delete, or say --finished");
  }
  for (const std::string& name : wanted) {
    if (const auto status = delete_run(*store, name); !status.ok()) {
      session.fail(status);
    } else {
      std::cout << "run \"" << name << "\" deleted\n";
    }
  }
}

}  // namespace

void add_get(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand("get", "List runs, newest first, or one of them");
  auto name = std::make_shared<std::string>(), output = std::make_shared<std::string>("table");
  command->add_option("RUN", *name, "Name of a run (default: all)")->type_name("");
  command->add_option("-o,--output", *output, "How to print (default: table)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"table", "json"}));
  command->footer("Examples:\n  paceline get\n  paceline get digits-allreduce -o json");
  command->callback([&session, name, output] { get_runs(session, *name, *output); });
}

void add_describe(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand(
      "describe", "Everything about one run: result, members, events, where its files are");
  auto name = std::make_shared<std::string>();
  command->add_option("RUN", *name, kRunHelp)->type_name("");
  command->footer("Examples:\n  paceline describe\n  paceline describe fashion-allreduce");
  command->callback([&session, name] { describe(session, *name); });
}

void add_delete(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand(
      "delete", "Stop runs that go on, and remove them with their logs, checkpoints and models");
  auto names = std::make_shared<std::vector<std::string>>();
  auto finished = std::make_shared<bool>(false);
  command->add_option("RUN", *names, "Names of runs")->type_name("");
  command->add_flag("--finished", *finished, "All runs that are finished");
  command->footer("Examples:\n  paceline delete digits-allreduce-2\n  paceline delete --finished");
  command->callback([&session, names, finished] { delete_runs(session, *names, *finished); });
}

}  // namespace paceline::cli
