#pragma once

namespace unflake::agent {

// Whether the program or one of its libraries could load further ones.
bool opens_libraries();

}  // namespace unflake::agent
