// paceline validate FILE...: every error of every file, as compilers print them.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <vector>

#include "base/file.h"
#include "base/pluralize.h"
#include "base/text.h"
#include "cli/commands/job_file.h"
#include "cli/session.h"

namespace paceline::cli {

void add_validate(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand(
      "validate", "Check TrainingJob files and print every error with file, line and column");
  auto files = std::make_shared<std::vector<std::string>>();
  add_value(*command, "FILE", *files, "", "TrainingJob files, YAML or JSON; - is standard input")->required();
  command->footer(
      "Exit code 0: all are valid. 2: at least one has errors. 3: else, at least one does not exist. 4: "
      "else, one "
      "can't be read.\n\nExample:\n  paceline validate examples/*.yaml");
  command->callback([&session, files] {
    int worst = kExitOk;  // of several failures the first of the documented codes
    for (const std::string& file : *files) {
      const auto job = load_job_file(file, std::cerr);
      if (!job.ok()) {
        session.fail(job.status());
        worst = worst == kExitOk ? session.exit_code : std::min(worst, session.exit_code);
      } else {
        std::cout << file << ": valid: TrainingJob " << job->job.metadata.ns << "/" << job->job.metadata.name
                  << ", " << pluralize(api::member_count(job->job), "member", "members") << "\n";
        const DataFiles data = look_for_data_files(*job);
        for (const std::string& missing : data.missing) {
          std::cerr << file << ": warning: spec.training.data: this machine has no file " << missing << "\n";
        }
        if (!data.warning.empty()) std::cerr << file << ": warning: " << data.warning << "\n";
        if (!data.unread.ok())
          std::cerr << file << ": warning: spec.training.data: " << data.unread.message() << "\n";
      }
    }
    session.exit_code = worst;
  });
}

}  // namespace paceline::cli
