#pragma once

// Events of a job and of its pods, as rows for people. Pure.

#include <string>
#include <vector>

#include "base/clock.h"
#include "controller/jobs/event_view.h"

namespace paceline::cli {

using jobs::EventView;

// AGE, TYPE, REASON, OBJECT, MESSAGE, without a header.
std::vector<std::string> event_row(const EventView& event, WallTime now);
std::vector<std::string> event_header();

}  // namespace paceline::cli
