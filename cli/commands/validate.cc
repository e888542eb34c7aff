// paceline validate FILE...: every error of every file, as compilers print them.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "cli/commands/job_file.h"
#include "cli/session.h"

namespace paceline::cli {

void add_validate(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand(
      "validate", "Check TrainingJob files and print every error with file, line and column");
  auto files = std::make_shared<std::vector<std::string>>();
  command->add_option("FILE", *files, "TrainingJob files, YAML or JSON; - is standard input")
      ->type_name("")
      ->required();
  command->footer(
      "Exit code 0: all are valid. 2: at least one is not.\n\nExample:\n  paceline validate examples/*.yaml");
  command->callback([&session, files] {
    for (const std::string& file : *files) {
      const auto job = load_job_file(file, std::cerr);
      if (!job.ok()) {
        session.fail(job.status());
        session.exit_code = kExitUsage;
      } else {
        std::cout << file << ": valid: TrainingJob " << job->job.metadata.ns << "/" << job->job.metadata.name
                  << ", " << api::member_count(job->job) << " members\n";
        for (const std::string& missing : missing_data_files(*job)) {
          std::cerr << file << ": warning: spec.training.data: this machine has no file " << missing << "\n";
        }
      }
    }
  });
}

}  // namespace paceline::cli
