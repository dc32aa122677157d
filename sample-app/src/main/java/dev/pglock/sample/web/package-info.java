/** What the sample shows: a page, the JSON behind it, and the port where they are. */
@NullMarked
package dev.pglock.sample.web;

import org.jspecify.annotations.NullMarked;
