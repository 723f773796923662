package web

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestCache(t *testing.T) {
	has := func(t *testing.T, c *cache[string], want ...string) {
		t.Helper()
		for _, k := range []string{"a", "b", "c", "large"} {
			v, ok := c.get(k)
			wanted := false
			for _, w := range want {
				wanted = wanted || w == k
			}
			if ok != wanted || ok && v != "value "+k {
				t.Errorf("%s: %q, %v", k, v, ok)
			}
		}
	}
	put := func(c *cache[string], key string, size int) { c.put(key, "value "+key, size) }
	t.Run("size limit", func(t *testing.T) {
		c := newCache[string](time.Hour, 100)
		put(c, "a", 40)
		put(c, "b", 40)
		put(c, "large", 101)
		has(t, c, "a", "b")
		put(c, "a", 50)
		has(t, c, "a", "b")
		put(c, "c", 20)
		has(t, c, "a", "c")
		put(c, "b", 100)
		has(t, c, "b")
	})
	t.Run("expiry", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCache[string](time.Minute, 100)
			put(c, "a", 40)
			time.Sleep(30 * time.Second)
			put(c, "b", 60)
			time.Sleep(30 * time.Second)
			has(t, c, "b")
			put(c, "c", 40)
			has(t, c, "b", "c")
			time.Sleep(time.Minute)
			has(t, c)
			if c.used != 0 || len(c.byKey) != 0 || c.order.Len() != 0 {
				t.Errorf("%d bytes, %d keys and %d list elements remain", c.used, len(c.byKey), c.order.Len())
			}
		})
	})
	t.Run("no caching", func(t *testing.T) {
		c := newCache[string](-1, 100)
		put(c, "a", 1)
		has(t, c)
	})
}
