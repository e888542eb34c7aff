#include "controller/dashboard/access_cache.h"

#include <openssl/sha.h>

#include <algorithm>

namespace paceline::dashboard {

namespace {

template <typename Kept>
auto fresh(Kept* kept, TimePoint now) {
  using Value = decltype(kept->value);
  return kept == nullptr || kept->until <= now ? std::optional<Value>() : std::optional<Value>(kept->value);
}

}  // namespace

Digest digest(std::string_view text) {
  Digest sum{};
  static_assert(sizeof(sum) == SHA256_DIGEST_LENGTH);
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), sum.data());
  return sum;
}

std::optional<std::optional<Somebody>> AccessCache::who(const Digest& token, TimePoint now) {
  return fresh(who_.find(token), now);
}

const Somebody* AccessCache::was(const Digest& token) {
  const auto* const kept = who_.find(token);
  return kept == nullptr || !kept->value ? nullptr : &*kept->value;
}

void AccessCache::put_who(const Digest& token, std::optional<Somebody> who, TimePoint now) {
  who_.put(token, {std::move(who), now + kKept});
}

std::optional<bool> AccessCache::may(const Digest& right, TimePoint now) {
  return fresh(may_.find(right), now);
}

void AccessCache::put_may(const Digest& right, bool allowed, TimePoint now) {
  may_.put(right, {allowed, now + kKept});
}

bool RequestLimits::take(const std::string& whose, TimePoint now) {
  Bucket* bucket = buckets_.find(whose);
  if (bucket == nullptr) bucket = &buckets_.put(whose, {burst_, now});
  const double elapsed = std::chrono::duration<double>(now - bucket->filled).count();
  bucket->tokens = std::min(burst_, bucket->tokens + elapsed * per_second_);
  bucket->filled = now;
  if (bucket->tokens < 1) return false;
  bucket->tokens -= 1;
  return true;
}

}  // namespace paceline::dashboard
