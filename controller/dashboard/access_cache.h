#pragma once

// Answers of the API server on who somebody is and what he may, each for kKept; and how often each may ask.
// Bounded: kMost answers, and kMost of those who ask; the oldest goes. Digests stand for tokens and rights,
// which are as long as others like, and none of them is kept. Pure; one thread at a time; `now` must not go
// back.

#include <array>
#include <cstddef>
#include <iterator>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace paceline::dashboard {

// SHA-256.
using Digest = std::array<unsigned char, 32>;
Digest digest(std::string_view text);

// The newest values by their keys, at most `most`.
template <typename Value, typename Key = std::string>
class NewestValues {
 public:
  explicit NewestValues(std::size_t most) : most_(most) {}

  Value* find(const Key& key) {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second.first;
  }
  Value& put(const Key& key, Value value) {
    if (const auto found = values_.find(key); found != values_.end()) {
      order_.erase(found->second.second);
      values_.erase(found);
    }
    if (values_.size() >= most_) {
      values_.erase(order_.front());
      order_.pop_front();
    }
    order_.push_back(key);
    return values_.emplace(key, std::pair(std::move(value), std::prev(order_.end()))).first->second.first;
  }
  std::size_t size() const { return values_.size(); }

 private:
  const std::size_t most_;
  std::list<Key> order_;  // the one that was put first is the first
  std::map<Key, std::pair<Value, typename std::list<Key>::iterator>> values_;
};

// Somebody as the API server knows him.
struct Somebody {
  std::string user, uid;
  std::map<std::string, std::vector<std::string>> extra;
  std::vector<std::string> groups;
  bool operator==(const Somebody&) const = default;
};

class AccessCache {
 public:
  static constexpr Duration kKept = std::chrono::seconds(10);
  static constexpr std::size_t kMost = 4096;

  // A token is somebody's, or nobody's; nothing: it is not known.
  std::optional<std::optional<Somebody>> who(const Digest& token, TimePoint now);
  // The token's owner when it was asked for last; null: it was nobody's, or is not known.
  const Somebody* was(const Digest& token);
  void put_who(const Digest& token, std::optional<Somebody> who, TimePoint now);
  std::optional<bool> may(const Digest& right, TimePoint now);
  void put_may(const Digest& right, bool allowed, TimePoint now);

 private:
  template <typename Value>
  struct Kept {
    Value value;
    TimePoint until{};
  };
  NewestValues<Kept<std::optional<Somebody>>, Digest> who_{kMost};
  NewestValues<Kept<bool>, Digest> may_{kMost};
};

// Requests of each user, or each address: `per_second` in the long run, `burst` at once.
class RequestLimits {
 public:
  static constexpr std::size_t kMost = 4096;
  RequestLimits(double per_second, double burst) : per_second_(per_second), burst_(burst) {}

  // False: too many.
  bool take(const std::string& whose, TimePoint now);
  std::size_t size() const { return buckets_.size(); }

 private:
  struct Bucket {
    double tokens = 0;
    TimePoint filled{};
  };
  const double per_second_, burst_;
  NewestValues<Bucket> buckets_{kMost};
};

}  // namespace paceline::dashboard
