// events: of jobs and their pods, the newest last; with -w also those that come.

#include <map>
#include <optional>

#include "base/status.h"
#include "cli/cluster/call.h"
#include "cli/cluster/changes.h"
#include "cli/cluster/event_rows.h"
#include "cli/cluster/job_view.h"
#include "cli/view/growing_table.h"

namespace paceline::cli {

namespace {

class EventPrinter {
 public:
  explicit EventPrinter(Call& call) : call_(call) {}

  // Those that were not printed yet.
  void print(const std::vector<EventView>& events) {
    std::vector<std::vector<std::string>> rows;
    if (!header_printed_ && !events.empty()) rows.push_back(row_of("NAMESPACE", event_header()));
    header_printed_ = header_printed_ || !events.empty();
    for (const EventView& event : events) {
      std::string& printed = printed_[event.key];
      if (printed == event.resource_version) continue;
      printed = event.resource_version;
      rows.push_back(
          row_of(event.key.substr(0, event.key.find('/')), event_row(event, call_.clock.wall_now())));
    }
    for (const std::string& line : table_.add(rows)) call_.out << line << "\n";
    call_.out.flush();
  }

 private:
  std::vector<std::string> row_of(const std::string& ns, std::vector<std::string> row) const {
    if (call_.all_namespaces) row.insert(row.begin(), ns);
    return row;
  }
  Call& call_;
  GrowingTable table_{{}};
  bool header_printed_ = false;
  std::map<std::string, std::string> printed_;  // resource version by key
};

}  // namespace

absl::Status list_events(Call& call, const EventsOptions& options) {
  const std::string ns = call.all_namespaces ? "" : call.ns;
  std::optional<WallTime> created;
  if (!options.name.empty()) {
    PL_ASSIGN_OR_RETURN(const kube::Json job, call.jobs.job(ns, options.name));
    created = read_job(job).created;
  }
  PL_ASSIGN_OR_RETURN(JobClient::Events events, call.jobs.events(ns, options.name));
  drop_earlier(events.events, created);
  EventPrinter printer(call);
  printer.print(events.events);
  if (events.events.empty() && !options.watch) {
    call.err << "No events" << (call.all_namespaces ? "" : str_cat(" in namespace ", ns)) << " about "
             << (options.name.empty() ? "jobs" : str_cat("job ", options.name))
             << " (the API server keeps them for an hour).\n";
  }
  if (!options.watch) return absl::OkStatus();
  Changes changes;
  changes.scope.resource = jobs::kCoreEvents;
  changes.scope.ns = ns;
  changes.resource_version = events.resource_version;
  changes.asked = {.what = "watch events", .verb = "watch", .resource = jobs::kCoreEvents, .ns = ns};
  changes.on_object = [&](const kube::Json& object) {
    if (jobs::is_about(object, options.name)) printer.print({jobs::read_event(object)});
    return static_cast<bool>(call.out);
  };
  changes.relist = [&]() -> absl::StatusOr<std::string> {
    PL_ASSIGN_OR_RETURN(JobClient::Events again, call.jobs.events(ns, options.name));
    drop_earlier(again.events, created);
    printer.print(again.events);
    return again.resource_version;
  };
  return follow_changes(call, std::move(changes));
}

}  // namespace paceline::cli
