#pragma once

// What a local run (`paceline run`) does not act on. Pure.

#include <string>
#include <vector>

#include "controller/api/types.h"

namespace paceline::api {

struct Unused {
  std::string path;  // spec.runPolicy.cleanPodPolicy
  std::string why;   // what happens instead, for people
};

// Sets what only a cluster acts on to its default, and says so for each field that had another value.
std::vector<Unused> make_local(TrainingJob& job);

}  // namespace paceline::api
