#pragma once

// "Did you mean": the known name nearest to a wrong one. Pure.

#include <span>
#include <string>
#include <string_view>

namespace paceline::api {

// The number of single-character insertions, deletions, replacements and swaps of neighbours between the two,
// letters' case ignored. (Optimal string alignment; time a.size() * b.size(); both are cut to 64 bytes.)
int edit_distance(std::string_view a, std::string_view b);

// The nearest of `names`, or "" where none is near enough to be meant: a third of the length, at least 1
// edit.
std::string nearest_name(std::string_view wrong, std::span<const std::string> names);

bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace paceline::api
