#pragma once

// Whether a view's communicator is shrunk from that of the last one. Pure.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"

namespace paceline::nccl {

// A rank's communicator of an earlier view, from which a smaller one can be made.
struct Parent {
  Generation view;
  int rank = 0, world = 0;  // in that view
};

// How the ranks of a view make their communicator.
struct Origin {
  bool shrinks = false;       // from that of `view`, without its ranks `excluded` (ascending); else by init
  Generation view;            //
  std::vector<int> excluded;  //
  std::string why;            // it does not shrink
};
// From what each rank holds, by rank: they shrink where all hold one of the same view, in the same order, of
// which some rank is not there any more.
Origin origin_of(std::span<const std::optional<Parent>> parents);

}  // namespace paceline::nccl
