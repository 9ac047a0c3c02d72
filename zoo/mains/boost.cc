#define BOOST_TEST_MODULE zoo
#include <boost/test/unit_test.hpp>
