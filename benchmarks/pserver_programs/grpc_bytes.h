#pragma once

// Bytes in and out of gRPC's messages.

#include <grpcpp/grpcpp.h>

#include <cstring>
#include <vector>

#include "base/check.h"

namespace bench {

inline void copy_out(grpc::ByteBuffer& buffer, std::vector<char>& memory) {
  std::vector<grpc::Slice> slices;
  PL_CHECK(buffer.Dump(&slices).ok(), "a whole message");
  std::size_t at = 0;
  for (const grpc::Slice& slice : slices) {
    PL_CHECK(at + slice.size() <= memory.size(), "as long as it should be");
    std::memcpy(memory.data() + at, slice.begin(), slice.size());
    at += slice.size();
  }
}

// Without a copy: the memory stays.
inline grpc::ByteBuffer view(const std::vector<char>& memory) {
  const grpc::Slice slice(memory.data(), memory.size(), grpc::Slice::STATIC_SLICE);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace bench
