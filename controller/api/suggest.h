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

// The one of `names` that is meant by a wrong one: the only one that begins with it ("async": Asynchronous),
// the nearest, else the first whose words it is the initials of ("lr": learningRate), else the first that
// ends with it ("batchSize": globalBatchSize); letters' case ignored. "": none is.
std::string meant_name(std::string_view wrong, std::span<const std::string> names);

bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace paceline::api
