#pragma once

// Changes of views as text for people. Pure.

#include <string>

#include "controller/api/status.h"

namespace paceline::diagnosis {

// "worker-1 left, worker-2 and worker-3 came"; "the same members".
std::string members_of(const api::ViewChange& change);

// "noticed after 1 ms, first step after 13 ms (4 ms to the view, 6 ms to one state, 3 ms for the step), no
// step lost".
std::string times_of(const api::ViewChange& change);

// "view 2 trains: " and both.
std::string text_of(const api::ViewChange& change);

}  // namespace paceline::diagnosis
