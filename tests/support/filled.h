#pragma once

// A value whose fields (base/fields.h) are all set, each to something else.

#include <concepts>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/clock.h"
#include "base/fields.h"
#include "base/text.h"

namespace paceline {

struct Fill {
  int& last;  // what was given out

  void operator()(const NamedField&, std::string& text) const { text = str_cat("text-", ++last); }
  void operator()(const NamedField&, bool& flag) const { flag = true; }
  void operator()(const NamedField&, std::integral auto& number) const { number = ++last; }
  void operator()(const NamedField& field, double& number) const {
    number = field.most <= 1 ? 0.001 * ++last : ++last + 0.5;
  }
  void operator()(const NamedField&, WallTime& time) const { time = WallTime(std::chrono::seconds(++last)); }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void operator()(const NamedField&, Enum& value) const { value = static_cast<Enum>(1); }
  template <HasFields T>
  void operator()(const NamedField&, T& value) const {
    T::fields(*this, value);
  }
  template <typename T>
  void operator()(const NamedField& field, std::optional<T>& value) const {
    (*this)(field, value.emplace());
  }
  template <typename T>
  void operator()(const NamedField& field, std::vector<T>& list) const {
    for (int i = 0; i < 2; ++i) (*this)(field, list.emplace_back());
  }
};

template <HasFields T>
T filled() {
  int last = 0;
  T value;
  T::fields(Fill{last}, value);
  return value;
}

}  // namespace paceline
