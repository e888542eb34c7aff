// paceline plot RUN: loss, accuracy and step times as SVG.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/file.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "cli/plot/metrics.h"
#include "cli/plot/plot.h"
#include "cli/session.h"

namespace paceline::cli {

namespace {

constexpr std::size_t kMaxMetricsBytes = std::size_t{1} << 30;

void plot(Session& session, const std::string& name, const std::string& output) {
  const auto store = session.store();
  if (!store.ok()) return session.fail(store.status());
  const auto run = store->choose(name);
  if (!run.ok()) return session.fail(run.status());
  const auto text = read_regular_file(run->folder + "/metrics.jsonl", kMaxMetricsBytes);
  if (!text.ok()) return session.fail(text.status());
  const std::string svg = plot_svg(parse_metrics(*text), run->name);
  if (output == "-") {
    std::cout << svg << std::flush;
    return;
  }
  const std::string path =
      std::filesystem::absolute(output.empty() ? run->name + ".svg" : output).lexically_normal().string();
  if (const absl::Status status = write_named_file(path, svg); !status.ok()) return session.fail(status);
  std::cout << path << "\n";
}

}  // namespace

void add_plot(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand("plot", "Draw a run's loss, accuracy and step times by member as SVG");
  auto name = std::make_shared<std::string>(), output = std::make_shared<std::string>();
  add_value(*command, "RUN", *name, "", "Name of a run (default: the newest that goes on, else the newest)");
  add_value(*command, "-o,--output", *output, "FILE",
            "File to write (default: RUN.svg here); - is standard output");
  command->footer("Example:\n  paceline plot fashion-allreduce -o loss.svg");
  command->callback([&session, name, output] { plot(session, *name, *output); });
}

}  // namespace paceline::cli
