#pragma once

// A warning about data files that are both trained on and held out.

#include <string>
#include <vector>

namespace paceline {

// The warning names the first such file; it is empty where there is none. A file is the same by any of its
// paths, and one that can't be looked at is skipped. With `cut` the held-out samples are cut off the training
// set, so that a file which `train` names twice counts as well.
std::string warn_of_same_files(const std::vector<std::string>& train,
                               const std::vector<std::string>& held_out, bool cut);

}  // namespace paceline
