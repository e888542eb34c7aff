// get, describe: what the API server has, for people and for programs.

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/status.h"
#include "cli/cluster/call.h"
#include "cli/cluster/changes.h"
#include "cli/cluster/describe_text.h"
#include "cli/cluster/job_view.h"
#include "cli/cluster/names.h"
#include "cli/view/growing_table.h"
#include "cli/view/yaml.h"
#include "controller/cluster/kube/job_object.h"

namespace paceline::cli {

namespace {

using kube::Json;

constexpr std::size_t kMaxSpecErrorBytes = 4000;

// What is printed of one object after the other, in the order of the API server, and then as they change.
class JobPrinter {
 public:
  JobPrinter(Call& call, const GetOptions& options)
      : call_(call), options_(options), table_(job_columns_right(call.all_namespaces)) {}

  void print(std::vector<Json> objects) {
    if (options_.output == "name") {
      for (const Json& object : objects)
        call_.out << resource_name(kube::text_at(object, {"metadata", "name"})) << "\n";
    } else if (options_.output == "json" || options_.output == "yaml") {
      print_whole(std::move(objects));
    } else {
      print_table(objects);
    }
    call_.out.flush();
  }

 private:
  void print_whole(std::vector<Json> objects) {
    const bool list = options_.name.empty() && !options_.watch;
    std::vector<Json> shown;
    if (list) {
      shown.push_back(list_of(std::move(objects)));
    } else {
      for (Json& object : objects) shown.push_back(printable(std::move(object)));
    }
    for (const Json& json : shown) {
      const std::string text = json.dump(4, ' ', false, Json::error_handler_t::replace);
      const bool yaml = options_.output == "yaml";
      call_.out << (yaml && options_.watch ? "---\n" : "") << (yaml ? yaml_of(text) : text + "\n");
    }
  }
  void print_table(const std::vector<Json>& objects) {
    std::vector<JobView> jobs;
    for (const Json& object : objects) jobs.push_back(read_job(object));
    const JobColumns columns = options_.output == "wide" ? JobColumns::kWide : JobColumns::kNormal;
    auto rows = job_rows(jobs, columns, call_.all_namespaces, call_.clock.wall_now());
    if (header_printed_) rows.erase(rows.begin());
    header_printed_ = true;
    for (const std::string& line : table_.add(rows)) call_.out << line << "\n";
  }

  Call& call_;
  const GetOptions& options_;
  GrowingTable table_;
  bool header_printed_ = false;
};

// Of all jobs, or of the one that is named.
absl::StatusOr<JobClient::Listed> listed(Call& call, const GetOptions& options) {
  if (options.name.empty()) return call.client.list_jobs(call.all_namespaces ? "" : call.ns);
  PL_ASSIGN_OR_RETURN(Json object, call.client.job(call.ns, options.name));
  JobClient::Listed one;
  one.resource_version = kube::text_at(object, {"metadata", "resourceVersion"});
  one.objects.push_back(std::move(object));
  return one;
}

}  // namespace

absl::Status get_jobs(Call& call, const GetOptions& options) {
  PL_ASSIGN_OR_RETURN(JobClient::Listed first, listed(call, options));
  const bool table = options.output == "table" || options.output == "wide";
  std::map<std::string, std::string> printed;  // resource version by uid
  const auto is_news = [&](const Json& object) {
    std::string& version = printed[kube::text_at(object, {"metadata", "uid"})];
    const std::string& now = kube::text_at(object, {"metadata", "resourceVersion"});
    return std::exchange(version, now) != now;
  };
  for (const Json& object : first.objects) (void)is_news(object);
  JobPrinter printer(call, options);
  if (first.objects.empty() && table) {
    call.err << (call.all_namespaces ? "No jobs in any namespace."
                                     : str_cat("No jobs in namespace ", call.ns, "."))
             << " Start one with `" << call.program << " apply -f job.yaml`.\n";
  } else {
    printer.print(std::move(first.objects));
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
    PL_ASSIGN_OR_RETURN(JobClient::Listed again, listed(call, options));
    for (Json& object : again.objects) {
      if (is_news(object)) printer.print({std::move(object)});
    }
    return again.resource_version;
  };
  return follow_changes(call, std::move(changes));
}

absl::Status describe_job(Call& call, const std::string& name) {
  PL_ASSIGN_OR_RETURN(const Json object, call.client.choose(call.ns, name));
  Described described;
  described.job = read_job(object);
  api::Parsed parsed = kube::parse_job(object, kube::job_metadata(object));
  described.spec_errors = kube::errors_of(parsed.diagnostics, kMaxSpecErrorBytes);
  described.spec = std::move(parsed.job);
  PL_ASSIGN_OR_RETURN(described.pods, call.client.pods(call.ns, described.job.name));
  auto events = call.client.events(call.ns, described.job.name);
  if (events.ok()) {
    described.events = std::move(events->events);
  } else {
    described.events_error = std::string(events.status().message());
  }
  described.now = call.clock.wall_now();
  described.program = call.program;
  for (const std::string& line : describe_lines(described, call.terminal)) call.out << line << "\n";
  return absl::OkStatus();
}

}  // namespace paceline::cli
