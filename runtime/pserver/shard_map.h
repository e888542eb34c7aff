#pragma once

// Which server holds which part of the flat weight vector. Pure.
//
// The vector is cut, in units of kAlignment elements and from its end, into slices: as many as a multiple of
// the servers, the least with which none is larger than the given size (but for a unit). Slice k belongs to
// server k mod M. A server's slices lie one behind the other, in the order of k, in its slab. Slices differ
// by at most one unit, and so do servers' shares. A vector that is too short leaves slices empty.

#include <cstddef>
#include <span>
#include <vector>

namespace paceline::pserver {

inline constexpr std::size_t kDefaultSliceBytes = std::size_t{1} << 20;

struct Slice {
  int server = 0;
  std::size_t begin = 0;  // in the flat vector
  std::size_t slab = 0;   // in the server's slab
  std::size_t count = 0;
};

class ShardMap {
 public:
  // `slice_bytes` 0: kDefaultSliceBytes. REQUIRES: servers > 0.
  ShardMap(std::size_t elements, int servers, std::size_t slice_bytes);

  std::size_t elements() const { return elements_; }
  int servers() const { return servers_; }
  std::size_t slice_bytes() const { return slice_bytes_; }
  // Of one server, in the order of its slab.
  std::span<const Slice> slices(int server) const;
  // Elements of one server.
  std::size_t share(int server) const;

  // Calls piece(server, begin, slab, count) for each part of [begin, end) that lies in one slice, from the
  // vector's end to its beginning.
  template <typename Piece>
  void each_piece(std::size_t begin, std::size_t end, Piece piece) const {
    for (std::size_t k = first_below(end); k < order_.size(); ++k) {
      const Slice& slice = order_[k];
      if (slice.begin + slice.count <= begin) break;
      const std::size_t from = begin > slice.begin ? begin : slice.begin;
      const std::size_t to = end < slice.begin + slice.count ? end : slice.begin + slice.count;
      if (from < to) piece(slice.server, from, slice.slab + (from - slice.begin), to - from);
    }
  }

  static constexpr std::size_t kAlignment = 16;

 private:
  // The first slice, from the vector's end, that begins before `end`.
  std::size_t first_below(std::size_t end) const;

  std::size_t elements_;
  int servers_;
  std::size_t slice_bytes_;
  std::vector<Slice> order_;  // by k
  std::vector<std::vector<Slice>> of_server_;
  std::vector<std::size_t> shares_;
};

}  // namespace paceline::pserver
