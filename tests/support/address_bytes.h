#pragma once

// A rank's address as a fixed number of bytes, to go through a socket between processes that a test or a
// benchmark forked.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "runtime/collective/fabric.h"

namespace paceline {

inline constexpr std::size_t kAddressBytes = 512;

inline std::vector<std::byte> pack(const collective::Address& address) {
  ByteWriter writer;
  writer.text(address.host_id);
  writer.text(address.local_socket);
  writer.text(address.tcp[0]);
  std::vector<std::byte> bytes = writer.take();
  bytes.resize(kAddressBytes);
  return bytes;
}

inline collective::Address unpack(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  collective::Address address;
  address.host_id = reader.text(200);
  address.local_socket = reader.text(200);
  address.tcp = {std::string(reader.text(200))};
  return address;
}

}  // namespace paceline
