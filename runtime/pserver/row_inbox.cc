#include "runtime/pserver/row_inbox.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "runtime/pserver/sparse/row_hash.h"

namespace paceline::pserver {

bool RowInbox::knows(FrameKind kind) {
  return kind == FrameKind::kPullRows || kind == FrameKind::kPushRows || kind == FrameKind::kRowIds ||
         kind == FrameKind::kRowPlaces || kind == FrameKind::kRowGradient;
}

// ---- what is announced ----

absl::Status RowInbox::check_parts(std::size_t& rows, std::size_t& floats) const {
  rows = floats = 0;
  for (const RowsOfTable& part : message_) {
    if (part.table >= options_.tables.size()) {
      return absl::InvalidArgumentError(
          str_cat("names table ", part.table, " of ", options_.tables.size(), ": there is no such table"));
    }
    rows += part.count;
    floats += part.count * dim_of(part.table);
  }
  if (floats <= sparse::kMaxFloatsPerCall) return absl::OkStatus();
  return absl::InvalidArgumentError(
      str_cat("names rows of ", floats, " floats at once, at most ", sparse::kMaxFloatsPerCall));
}

absl::Status RowInbox::announce_pull(const FrameHeader& header, Bytes message) {
  if (expects_ != Expects::kNothing || pull_is_here_) return unexpected(header);
  PL_RETURN_IF_ERROR(decode(message, message_));
  std::size_t rows = 0;
  PL_RETURN_IF_ERROR(check_parts(rows, pull_.floats));
  pull_.number = header.number;
  pull_.parts = message_;
  pull_.ids.take(rows);
  expects_ = Expects::kPullIds;
  return absl::OkStatus();
}

absl::Status RowInbox::announce_push(const FrameHeader& header, Bytes message) {
  const bool placed = header.begin == 1;
  if (expects_ != Expects::kNothing || push_.here || header.begin > 1 || (placed && !options_.shared)) {
    return unexpected(header);
  }
  PL_RETURN_IF_ERROR(decode(message, message_));
  std::size_t rows = 0;
  PL_RETURN_IF_ERROR(check_parts(rows, push_.floats));
  push_.clear();
  push_.here = true;
  push_.placed = placed;
  push_.unit = header.number;
  push_.arrived = 0;
  push_.ids.take(rows);
  if (placed) push_.places.take(rows);
  PL_RETURN_IF_ERROR(find_gradients());
  expects_ = Expects::kPushIds;
  return absl::OkStatus();
}

absl::Status RowInbox::find_gradients() {
  const float* next = options_.shared ? nullptr : push_.gradient.take(push_.floats).data();
  std::size_t first = 0;
  for (const RowsOfTable& part : message_) {
    const std::size_t dim = dim_of(part.table);
    Part at{part.table, first, part.count, next, part.count};
    if (options_.shared) {
      const std::size_t size = options_.arena.size();
      if (part.gradient > size || part.gradient % sizeof(float) != 0) {
        return absl::InvalidArgumentError(str_cat("says that gradients of table ",
                                                  options_.tables[part.table].name, " lie at ", part.gradient,
                                                  " of its arena of ", size, " bytes"));
      }
      at.gradient = reinterpret_cast<const float*>(options_.arena.data() + part.gradient);
      at.limit = (size - part.gradient) / (dim * sizeof(float));
      if (!push_.placed && at.limit < part.count) {
        return absl::InvalidArgumentError(str_cat(part.count, " gradients of table ",
                                                  options_.tables[part.table].name,
                                                  " do not lie in its arena"));
      }
    } else {
      next += part.count * dim;
    }
    first += part.count;
    push_.parts.push_back(at);
  }
  return absl::OkStatus();
}

// ---- what follows ----

std::span<std::byte> RowInbox::expected(const FrameHeader& header) {
  if (header.kind == FrameKind::kRowIds && expects_ == Expects::kPullIds && header.number == pull_.number) {
    return std::as_writable_bytes(pull_.ids.all());
  }
  if (header.number != push_.unit) return {};
  if (header.kind == FrameKind::kRowIds && expects_ == Expects::kPushIds) {
    return std::as_writable_bytes(push_.ids.all());
  }
  if (header.kind == FrameKind::kRowPlaces && expects_ == Expects::kPlaces) {
    return std::as_writable_bytes(push_.places.all());
  }
  if (header.kind == FrameKind::kRowGradient && expects_ == Expects::kGradient) {
    const std::span<float> all = push_.gradient.all();
    const std::size_t count = header.length / sizeof(float);
    if (count > all.size() - push_.arrived || header.begin > all.size() - count) return {};
    return std::as_writable_bytes(all.subspan(header.begin, count));
  }
  return {};
}

absl::StatusOr<std::span<std::byte>> RowInbox::place(const FrameHeader& header, std::uint64_t at) {
  const std::span<std::byte> memory = expected(header);
  if (memory.empty() || memory.size() != header.length) return unexpected(header);
  return memory.subspan(at);
}

absl::Status RowInbox::received(const FrameHeader& header, Bytes message) {
  if (header.kind == FrameKind::kPullRows) return announce_pull(header, message);
  if (header.kind == FrameKind::kPushRows) return announce_push(header, message);
  if (header.length == 0) return unexpected(header);  // others have been through place()
  if (header.kind == FrameKind::kRowIds) return ids_are_here();
  if (header.kind == FrameKind::kRowPlaces) return places_are_here();
  push_.arrived += header.length / sizeof(float);
  if (push_.arrived == push_.floats) expects_ = Expects::kNothing;
  return absl::OkStatus();
}

absl::Status RowInbox::check_ids(const sparse::TableSpec& spec, std::span<const sparse::RowId> ids) const {
  bool fits = sparse::server_of(ids[0], options_.servers) == options_.server;
  for (std::size_t k = 1; k < ids.size(); ++k) {
    fits = fits && ids[k] > ids[k - 1] && sparse::server_of(ids[k], options_.servers) == options_.server;
  }
  if (fits) return absl::OkStatus();
  PL_RETURN_IF_ERROR(with_context(sparse::check_rising(ids), str_cat("table ", spec.name)));
  return absl::InvalidArgumentError(str_cat("table ", spec.name, ": names rows that are another server's"));
}

absl::Status RowInbox::ids_are_here() {
  const bool pulls = expects_ == Expects::kPullIds;
  const std::span<const sparse::RowId> ids = pulls ? pull_.ids.all() : push_.ids.all();
  std::size_t first = 0;
  for (const RowsOfTable& part : message_) {
    PL_RETURN_IF_ERROR(check_ids(options_.tables[part.table], ids.subspan(first, part.count)));
    first += part.count;
  }
  pull_is_here_ = pulls;
  expects_ = Expects::kNothing;
  if (!pulls && push_.placed) expects_ = Expects::kPlaces;
  if (!pulls && !options_.shared) expects_ = Expects::kGradient;
  return absl::OkStatus();
}

absl::Status RowInbox::places_are_here() {
  for (const Part& part : push_.parts) {
    const auto places = std::as_const(push_.places).all().subspan(part.first, part.count);
    const std::uint32_t last = *std::max_element(places.begin(), places.end());
    if (last >= part.limit) {
      return absl::InvalidArgumentError(str_cat(
          "gradient ", last, " of table ", options_.tables[part.table].name, " does not lie in its arena"));
    }
  }
  expects_ = Expects::kNothing;
  return absl::OkStatus();
}

// ---- a unit's push ----

absl::Status RowInbox::check_commit(std::int64_t unit) const {
  if (expects_ == Expects::kNothing && (!push_.here || push_.unit == unit)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      expects_ != Expects::kNothing
          ? str_cat("committed unit ", unit, " with gradients of rows missing")
          : str_cat("committed unit ", unit, " with gradients of rows of unit ", push_.unit));
}

void RowInbox::keep_aside() {
  if (!push_.here) return;
  if (aside_used_ == aside_.size()) aside_.emplace_back();
  Push& kept = aside_[aside_used_++];
  std::swap(kept, push_);
  push_.clear();
  if (!options_.shared) return;
  float* to = kept.gradient.take(kept.floats).data();
  for (Part& part : kept.parts) {
    const std::size_t dim = dim_of(part.table);
    const float* const from = std::exchange(part.gradient, to);
    if (kept.placed) {
      const std::uint32_t* const places = kept.places.all().data() + part.first;
      for (std::size_t k = 0; k < part.count; ++k, to += dim) {
        std::memcpy(to, from + places[k] * dim, dim * sizeof(float));
      }
    } else {
      std::memcpy(to, from, part.count * dim * sizeof(float));
      to += part.count * dim;
    }
  }
  kept.placed = false;
}

void RowInbox::Push::find(std::uint32_t table, std::vector<sparse::GradientRows>& to) const {
  if (!here) return;
  for (const Part& part : parts) {
    if (part.table != table) continue;
    to.push_back({ids.all().subspan(part.first, part.count), part.gradient,
                  placed ? places.all().data() + part.first : nullptr});
  }
}

void RowInbox::find_aside(std::uint32_t table, std::vector<sparse::GradientRows>& parts) const {
  for (std::size_t k = 0; k < aside_used_; ++k) aside_[k].find(table, parts);
}

void RowInbox::find(std::uint32_t table, std::vector<sparse::GradientRows>& parts) const {
  push_.find(table, parts);
}

}  // namespace paceline::pserver
