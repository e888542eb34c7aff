// paceline plot: loss, accuracy and step times of a run, or of a job on a cluster, as SVG.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/file.h"
#include "base/regular_file.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands/cluster_flags.h"
#include "cli/plot/metrics.h"
#include "cli/plot/plot.h"
#include "cli/session.h"

namespace paceline::cli {

namespace {

constexpr std::size_t kMaxMetricsBytes = std::size_t{1} << 30;

// Writes the picture, and says where.
absl::Status write_picture(const RunMetrics& metrics, const std::string& name, const std::string& output) {
  const std::string svg = plot_svg(metrics, name);
  if (output == "-") {
    std::cout << svg << std::flush;
    return absl::OkStatus();
  }
  const std::string path =
      std::filesystem::absolute(output.empty() ? name + ".svg" : output).lexically_normal().string();
  PL_RETURN_IF_ERROR(write_named_file(path, svg));
  std::cout << path << "\n";
  return absl::OkStatus();
}

absl::Status plot_run(Session& session, const std::string& name, const std::string& output) {
  PL_ASSIGN_OR_RETURN(const RunStore store, session.store());
  PL_ASSIGN_OR_RETURN(const auto run, store.choose(name));
  PL_ASSIGN_OR_RETURN(const std::string text,
                      read_regular_file(run.folder + "/metrics.jsonl", kMaxMetricsBytes));
  return write_picture(parse_metrics(text), run.name, output);
}

// A job that is there, or deleted: the dashboard knows both.
absl::Status plot_job(Call& call, std::string name, const std::string& output) {
  if (call.dashboard == nullptr) return no_dashboard("a job's steps over time");
  if (name.empty()) {
    PL_ASSIGN_OR_RETURN(const kube::Json newest, call.jobs.choose(call.ns, ""));
    name = kube::text_at(newest, {"metadata", "name"});
  }
  const std::string job = str_cat("/jobs/", call.ns, "/", name);
  PL_ASSIGN_OR_RETURN(const std::string series, call.dashboard->get(str_cat(job, "/series?points=2000")));
  PL_ASSIGN_OR_RETURN(const std::string map,
                      call.dashboard->get(str_cat(job, "/heatmap?columns=1000&parts=step")));
  const auto metrics = metrics_of(series, map);
  if (!metrics)
    return absl::UnavailableError("the dashboard's answer is of another version than this program");
  if (metrics->steps.empty())
    return absl::NotFoundError(
        str_cat("the dashboard knows no step of job ", call.ns, "/", name,
                ": it has taken none, or was over before that dashboard, or its history, began"));
  return write_picture(*metrics, name, output);
}

}  // namespace

void add_plot(CLI::App& app, Session& session) {
  auto* command =
      app.add_subcommand("plot", "Draw a run's, or a job's, loss, accuracy and step times by member as SVG");
  auto name = std::make_shared<std::string>(), output = std::make_shared<std::string>();
  add_value(*command, "NAME", *name, "", kNameHelp);
  add_value(*command, "-o,--output", *output, "FILE",
            "File to write (default: NAME.svg here); - is standard output");
  auto flags = add_cluster_flags(*command, session, Where::kBoth);
  add_dashboard_flag(*command, *flags);
  command->footer(session.examples({{false, "plot fashion-allreduce -o loss.svg"},
                                    {true, "plot digits -n team-a --dashboard https://localhost:8090"}}));
  command->callback([&session, name, output, flags] {
    if (!is_on_cluster(session, *flags)) {
      if (const absl::Status status = plot_run(session, *name, *output); !status.ok()) session.fail(status);
      return;
    }
    std::string job;
    if (!take_job_name(session, *name, job)) return;
    flags->asks_dashboard = true;
    on_cluster(session, *flags, Mode::kOnce, [&](Call& call) { return plot_job(call, job, *output); });
  });
}

}  // namespace paceline::cli
