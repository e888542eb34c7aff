#pragma once

// What every command of `paceline` works with. One thread.

#include <initializer_list>
#include <iostream>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/clock.h"
#include "cli/state/run_store.h"
#include "cli/view/terminal.h"

namespace CLI {
class App;
}

namespace paceline::cli {

// docs/cli.md lists them for users.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,         // the run failed
  kExitUsage = 2,          // bad command line or bad job file
  kExitNotFound = 3,       // no such run, job, member or file
  kExitSystem = 4,         // this machine or the cluster refused: permissions, disk, processes, no answer
  kExitInterrupted = 130,  // ctrl-C
};

// The help text of a NAME that RunStore::choose or JobClient::choose chooses.
inline constexpr const char* kNameHelp =
    "Name of a run, or of a job on a cluster (default: the newest that goes on, else the newest)";

// With SIGTERM (sigqueue's value) to the owner of a run: it is stopped in order to be deleted.
inline constexpr int kDeletionNotice = 0x64656c;

struct Session {
  const Clock& clock;
  Terminal out_terminal, error_terminal;
  std::string program = "paceline";  // as it was called: "kubectl paceline" works on clusters alone
  bool kubectl = false;
  std::string program_folder;    // where the paceline binary lies: its companions are looked for beside it
  std::string state_dir_option;  // --state-dir
  int exit_code = kExitOk;

  // Prints `paceline: message` to stderr, and sets the exit code that fits the status' code.
  void fail(const absl::Status& status);
  void fail(int code, std::string_view message);

  absl::StatusOr<RunStore> store() const;

  // For an error about a run that is not there; empty where no kubeconfig is.
  std::string cluster_hint() const;

  struct Example {
    bool on_cluster;
    std::string_view arguments;  // behind the program's name
  };
  // What stands below a command's options; called as kubectl paceline, those on a cluster alone.
  std::string examples(std::initializer_list<Example> examples) const;
};

// An option or a positional argument of a command, whose help calls its value `type`.
template <typename App, typename Value>
auto* add_value(App& command, const std::string& name, Value& value, const std::string& type,
                const std::string& help) {
  return command.add_option(name, value, help)->type_name(type);
}

// One function per command: adds it to the application, with its help text and examples.
void add_run(CLI::App& app, Session& session);
void add_apply(CLI::App& app, Session& session);
void add_events(CLI::App& app, Session& session);
void add_suspend(CLI::App& app, Session& session);
void add_resume(CLI::App& app, Session& session);
void add_scale(CLI::App& app, Session& session);
void add_checkpoint(CLI::App& app, Session& session);
void add_replace(CLI::App& app, Session& session);
void add_validate(CLI::App& app, Session& session);
void add_explain(CLI::App& app, Session& session);
void add_get(CLI::App& app, Session& session);
void add_describe(CLI::App& app, Session& session);
void add_logs(CLI::App& app, Session& session);
void add_top(CLI::App& app, Session& session);
void add_delete(CLI::App& app, Session& session);
void add_plot(CLI::App& app, Session& session);
void add_dashboard(CLI::App& app, Session& session);
void add_completion(CLI::App& app, Session& session);

}  // namespace paceline::cli
