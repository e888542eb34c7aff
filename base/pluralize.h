#pragma once

// How many of what, for people. Pure.

#include <concepts>
#include <string>
#include <string_view>

#include "base/text.h"

namespace paceline {

// "1 member", "2 members", "0 members".
template <std::integral Count>
std::string pluralize(Count count, std::string_view one, std::string_view more) {
  return str_cat(count, " ", count == 1 ? one : more);
}

}  // namespace paceline
