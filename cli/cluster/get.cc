// get, describe: what the API server has, for people and for programs.

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/status.h"
#include "cli/cluster/call.h"
#include "cli/cluster/changes.h"
#include "cli/cluster/describe_text.h"
#include "cli/cluster/event_rows.h"
#include "cli/cluster/job_view.h"
#include "cli/view/fit_columns.h"
#include "cli/view/growing_table.h"
#include "controller/cluster/kube/job_object.h"
#include "controller/jobs/yaml.h"

namespace paceline::cli {

namespace {

using kube::Json;

// What is printed of one object after the other, in the order of the API server, and then as they change.
class JobPrinter {
 public:
  JobPrinter(Call& call, const GetOptions& options)
      : call_(call), options_(options), columns_(job_columns(call.all_namespaces, options.output == "wide")) {
    std::vector<bool> right;
    for (const Column& column : columns_) right.push_back(column.right);
    table_.emplace(std::move(right));
  }

  void print(std::vector<Json> objects) {
    if (options_.output == "name") {
      for (const Json& object : objects)
        call_.out << call_.jobs.reference(kube::text_at(object, {"metadata", "name"})) << "\n";
    } else if (options_.output == "json" || options_.output == "yaml") {
      print_whole(std::move(objects));
    } else {
      print_table(objects);
    }
    call_.out.flush();
  }

 private:
  void print_whole(std::vector<Json> objects) {
    const bool list = (options_.name.empty() && !options_.watch) || options_.all;
    std::vector<Json> shown;
    if (list) {
      shown.push_back(list_of(std::move(objects)));
    } else {
      for (Json& object : objects) shown.push_back(printable(std::move(object)));
    }
    for (const Json& json : shown) {
      const std::string text = json.dump(4, ' ', false, Json::error_handler_t::replace);
      const bool yaml = options_.output == "yaml";
      call_.out << (yaml && options_.watch ? "---\n" : "") << (yaml ? jobs::yaml_of(text) : text + "\n");
    }
  }
  void print_table(const std::vector<Json>& objects) {
    std::vector<JobView> jobs;
    for (const Json& object : objects) jobs.push_back(read_job(object));
    std::vector<Row> rows =
        job_rows(jobs, options_.output == "wide", call_.all_namespaces, call_.clock.wall_now());
    std::vector<std::string> lines;
    if (options_.watch) {
      Row header;
      for (const Column& column : columns_) header.emplace_back(column.name);
      if (!std::exchange(header_printed_, true)) rows.insert(rows.begin(), std::move(header));
      lines = table_->add(rows);
    } else {
      // Wide is what was asked for: the terminal breaks the lines.
      const bool narrow = call_.terminal.interactive && options_.output != "wide";
      lines = fit_table(columns_, std::move(rows), narrow ? call_.terminal.columns : kAnyWidth);
    }
    for (const std::string& line : lines) call_.out << line << "\n";
  }

  Call& call_;
  const GetOptions& options_;
  const std::vector<Column> columns_;
  std::optional<GrowingTable> table_;  // of rows that come one by one
  bool header_printed_ = false;
};

// The history of the controller's dashboard has them.
absl::StatusOr<std::vector<Json>> deleted_jobs(Call& call, const GetOptions& options) {
  if (call.dashboard == nullptr) return no_dashboard("deleted jobs");
  const std::string ns = call.all_namespaces ? "" : str_cat("&namespace=", call.ns);
  PL_ASSIGN_OR_RETURN(const std::string text, call.dashboard->get(str_cat("/past?objects=1", ns)));
  PL_ASSIGN_OR_RETURN(const Json answer, kube::parse_json(text));
  std::vector<Json> found;
  for (const Json& object : kube::list_at(answer, {"jobs"})) {
    if (options.name.empty() || kube::text_at(object, {"metadata", "name"}) == options.name)
      found.push_back(object);
  }
  if (kube::flag_at(answer, {"more"}))
    call.err << "the history has more deleted jobs than are told at once: the latest are listed\n";
  return found;
}

// Lists all jobs, or those that are named so.
absl::StatusOr<JobSource::Listed> listed(Call& call, const GetOptions& options) {
  if (options.all) {
    PL_ASSIGN_OR_RETURN(std::vector<Json> deleted, deleted_jobs(call, options));
    GetOptions present = options;
    present.all = false;
    auto all = listed(call, present);
    if (absl::IsNotFound(all.status()) && !deleted.empty()) all = JobSource::Listed{};
    PL_RETURN_IF_ERROR(all.status());
    std::ranges::move(deleted, std::back_inserter(all->objects));
    return all;
  }
  if (options.name.empty()) return call.jobs.list_jobs(call.all_namespaces ? "" : call.ns);
  PL_ASSIGN_OR_RETURN(Json object, call.jobs.job(call.ns, options.name));
  JobSource::Listed one;
  one.resource_version = kube::text_at(object, {"metadata", "resourceVersion"});
  one.objects.push_back(std::move(object));
  return one;
}

}  // namespace

absl::Status get_jobs(Call& call, const GetOptions& options) {
  PL_ASSIGN_OR_RETURN(JobSource::Listed first, listed(call, options));
  const bool table = options.output == "table" || options.output == "wide";
  std::map<std::string, std::string> printed;  // resource version by uid
  const auto is_news = [&](const Json& object) {
    std::string& version = printed[kube::text_at(object, {"metadata", "uid"})];
    const std::string& now = kube::text_at(object, {"metadata", "resourceVersion"});
    return std::exchange(version, now) != now;
  };
  for (const Json& object : first.objects) (void)is_news(object);
  JobPrinter printer(call, options);
  if (!first.objects.empty() || !table) {
    printer.print(std::move(first.objects));
  } else if (const auto none = call.jobs.none(call.all_namespaces ? "" : call.ns, call.program);
             !none.empty()) {
    call.err << none << "\n";
  }
  if (!options.watch) return absl::OkStatus();
  const std::string ns = call.all_namespaces ? "" : call.ns;
  Changes changes;
  changes.scope.resource = kube::kTrainingJobs;
  changes.scope.ns = ns;
  if (!options.name.empty()) changes.scope.field_selector = str_cat("metadata.name=", options.name);
  changes.resource_version = first.resource_version;
  changes.asked = {.what = "watch jobs", .verb = "watch", .ns = ns};
  changes.on_object = [&](const Json& object) {
    if (is_news(object)) printer.print({object});
    return static_cast<bool>(call.out);
  };
  changes.relist = [&]() -> absl::StatusOr<std::string> {
    PL_ASSIGN_OR_RETURN(JobSource::Listed again, listed(call, options));
    for (Json& object : again.objects) {
      if (is_news(object)) printer.print({std::move(object)});
    }
    return again.resource_version;
  };
  return follow_changes(call, std::move(changes));
}

absl::Status describe_job(Call& call, const std::string& name) {
  PL_ASSIGN_OR_RETURN(const Json object, call.jobs.choose(call.ns, name));
  Described described;
  described.job = read_job(object);
  api::Parsed parsed = kube::parse_job(object, kube::job_metadata(object));
  described.spec_errors = kube::errors_of(parsed.diagnostics);
  described.spec = std::move(parsed.job);
  PL_ASSIGN_OR_RETURN(described.pods, call.jobs.pods(call.ns, described.job.name));
  auto events = call.jobs.events(call.ns, described.job.name);
  if (events.ok()) {
    described.events = std::move(events->events);
    drop_earlier(described.events, described.job.created);
  } else {
    described.events_error = std::string(events.status().message());
  }
  described.now = call.clock.wall_now();
  described.program = call.program;
  described.where = call.jobs.where(described.job.ns);
  for (const std::string& line : describe_lines(described, call.terminal)) call.out << line << "\n";
  return absl::OkStatus();
}

}  // namespace paceline::cli
