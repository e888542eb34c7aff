#pragma once

// Events of a job and of its pods, read from the API server's objects. Pure.

#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "controller/cluster/kube/json.h"
#include "controller/cluster/kube/resources.h"
#include "controller/jobs/job_source.h"

namespace paceline::jobs {

// kubectl asks for these, too: every reader's role has this one, not every role has events.k8s.io.
inline constexpr kube::Resource kCoreEvents{"v1", "events", "Event"};

EventView read_event(const kube::Json& object);

// Whether it is about this job or one of its pods, of any attempt. Empty job: about any job's object or pod.
bool is_about(const kube::Json& event, std::string_view job);

// A job's events have no other mark of it than its name: those before its creation are about an earlier job.
void drop_earlier(std::vector<EventView>& events, std::optional<WallTime> created);

// Leaves the `most` that were seen last, in any order.
void keep_newest(std::vector<EventView>& events, std::size_t most);

// The newest last.
void sort_events(std::vector<EventView>& events);

}  // namespace paceline::jobs
