#pragma once

// Data files that are trained on and held out as well.

#include <string>
#include <vector>

namespace paceline {

// What to warn of; empty: nothing. A file is the same by whatever path it is named; one that can't be looked
// at is none. `cut`: what is held out is cut off the training set, so that a file may be there once only.
std::string warn_of_same_files(const std::vector<std::string>& train,
                               const std::vector<std::string>& held_out, bool cut);

}  // namespace paceline
