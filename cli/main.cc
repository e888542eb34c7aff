// The paceline program: constructs, wires, and hands over to one command.

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/program.h"
#include "base/sanitize.h"
#include "base/text.h"
#include "cli/generate/generate.h"
#include "cli/session.h"
#include "cli/simulate/simulate.h"
#include "cli/usage.h"
#include "cli/view/sanitize.h"

namespace {

constexpr const char* kExitCodes = R"(Exit codes:
  0 done   1 the run failed   2 bad command line or job file   3 no such run, job, member or file
  4 this machine or the cluster refused, or did not answer   130 stopped

)";

std::string footer(const paceline::cli::Session& session) {
  return kExitCodes +
         session.examples(
             {{false, "run examples/digits-allreduce.yaml      train on this machine"},
              {false, "top                                     watch the newest run from another terminal"},
              {false, "logs digits-allreduce worker-1 -f       follow one member's log"},
              {true, "apply -f job.yaml                       train on the cluster of the current context"},
              {true, "get -n team-a                           list the jobs of a namespace"}}) +
         paceline::str_cat("\n\n`", session.program,
                           " COMMAND --help` shows a command's own options and examples.");
}

std::string program_folder() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string(".") : self.parent_path().string();
}

// kubectl runs what is called kubectl-paceline in the PATH for `kubectl paceline`.
bool called_by_kubectl(const char* name) {
  return std::filesystem::path(name).filename() == "kubectl-paceline";
}

using namespace paceline;

// Why what was printed did not all arrive; empty: it did. A reader that has gone (`| head`) wants no more,
// and that is no error.
std::string why_output_is_lost() {
  std::cout.flush();
  if (std::cout) return "";
  const int how = ::fcntl(STDOUT_FILENO, F_GETFL);
  if (how >= 0 && (how & O_ACCMODE) == O_RDONLY)
    return "the output could not be written: standard output is closed, or open for reading alone";
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  if (::poll(&out, 1, 0) >= 0 && (out.revents & POLLERR) != 0) return "";
  return "the output could not be written whole: is its disk full?";
}

int run(int argc, char** argv) {
  SystemClock clock;
  cli::Session session{.clock = clock,
                       .out_terminal = cli::detect_terminal(1),
                       .error_terminal = cli::detect_terminal(2),
                       .program_folder = program_folder()};

  if (argc > 0 && called_by_kubectl(argv[0])) {
    session.program = "kubectl paceline";
    session.kubectl = true;
  }

  CLI::App app(
      session.kubectl
          ? "Paceline trains models: TrainingJobs on the cluster of the kubeconfig's current context."
          : "Paceline trains models: one TrainingJob, by several processes of this machine or pods of a "
            "cluster.",
      session.program);
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", PACELINE_VERSION);
  app.footer(footer(session));
  if (!session.kubectl) {
    app.add_option("--state-dir", session.state_dir_option,
                   "Folder that keeps runs (default: $XDG_STATE_HOME/paceline, else ~/.local/state/paceline)")
        ->type_name("FOLDER");
    cli::add_run(app, session);
  }
  cli::add_validate(app, session);
  cli::add_explain(app, session);
  cli::add_apply(app, session);
  cli::add_get(app, session);
  cli::add_describe(app, session);
  cli::add_logs(app, session);
  cli::add_top(app, session);
  cli::add_events(app, session);
  cli::add_suspend(app, session);
  cli::add_resume(app, session);
  cli::add_scale(app, session);
  cli::add_checkpoint(app, session);
  cli::add_replace(app, session);
  cli::add_delete(app, session);
  cli::add_dashboard(app, session);
  cli::add_plot(app, session);
  if (!session.kubectl) {
    cli::add_generate(app, session);
    cli::add_simulate(app, session);
    cli::add_completion(app, session);
  }

  cli::refuse_empty_values(app);

  bool is_run = false;  // and no question about it
  try {
    if (const std::string missing = cli::missing_value(argc, argv); !missing.empty())
      throw CLI::ArgumentMismatch(missing);
    app.parse(argc, argv);
    is_run = !session.kubectl && app.got_subcommand("run");
  } catch (const CLI::ParseError& error) {
    // Help and version are "errors" of the library with exit code 0; everything else is a bad command line.
    const bool unknown_command = app.get_subcommands().empty() && !app.remaining().empty();
    if (error.get_exit_code() == 0 && !unknown_command) {
      app.exit(error);
    } else if (error.get_name() == "RequiredError" && app.get_subcommands().empty() && !unknown_command) {
      std::cerr << app.help();
      return cli::kExitUsage;
    } else {
      session.fail(cli::kExitUsage, cli::usage_message(app, error));
    }
  }
  // How a run has ended does not hang on its lines.
  if (session.exit_code == cli::kExitOk && !is_run) {
    if (const std::string why = why_output_is_lost(); !why.empty()) session.fail(cli::kExitSystem, why);
  }
  return session.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main("paceline", cli::kExitSystem, [&] {
    const cli::SanitizingBuffer errors(std::cerr, sanitize);
    std::optional<cli::SanitizingBuffer> output;
    if (::isatty(STDOUT_FILENO) == 1) output.emplace(std::cout, cli::sanitize_styled);
    return run(argc, argv);
  });
}
