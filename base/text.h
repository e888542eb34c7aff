#pragma once

// str_cat: absl::StrCat that also takes std::string_view. (Debian's abseil is built with a string_view of its
// own; keep absl::string_view out of our interfaces and use std::string_view.)

#include <string>
#include <string_view>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace paceline {

namespace text_internal {
template <typename T>
decltype(auto) piece(const T& value) {
  if constexpr (std::is_same_v<T, std::string_view> && !std::is_same_v<std::string_view, absl::string_view>) {
    return absl::string_view(value.data(), value.size());
  } else {
    return (value);
  }
}
}  // namespace text_internal

template <typename... T>
std::string str_cat(const T&... values) {
  return absl::StrCat(text_internal::piece(values)...);
}

}  // namespace paceline
